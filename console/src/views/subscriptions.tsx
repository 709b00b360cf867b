// Subscriptions: state, lag, rate and owners; pause, resume, and replay of their dead letters.

import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { Pause, Play, RotateCw } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { countText, durationText, rateText } from '../lib/format.ts';
import { listOf, poll } from '../lib/list.ts';
import { ratesBetween, sequenceOf, type Progress } from '../lib/rates.ts';
import type { SubscriptionSearch } from '../router.tsx';
import { Actions, type Action } from '../ui/actions.tsx';
import { Choices } from '../ui/filters.tsx';
import { ListView, RowName, Table, type Column } from '../ui/list-view.tsx';
import { Badge, Fact, Facts, linkStyle } from '../ui/parts.tsx';
import { DetailSheet } from '../ui/sheet.tsx';
import { Empty } from '../ui/states.tsx';

type Subscription = ResponseOf<'GET /admin/subscriptions'>['items'][number];
type Shard = ResponseOf<'GET /admin/subscriptions/{name}'>['shards'][number];

const states = ['running', 'paused', 'stopped', 'lost'] as const;

export function SubscriptionsView() {
  const { state, open } = useSearch({ from: '/subscriptions' });
  const set = useSearchChange<SubscriptionSearch>('open');
  const query = useQuery({
    queryKey: ['subscriptions'],
    queryFn: ({ signal }) => call('GET /admin/subscriptions', { signal }),
    refetchInterval: poll,
  });
  const rates = useRates(query.data?.items ?? [], query.dataUpdatedAt);
  const all = query.data?.items;
  const rows = all
    ?.filter((each) => state === undefined || each.state === state)
    .toSorted(
      (one, other) =>
        other.deadLetters - one.deadLetters ||
        other.seconds - one.seconds ||
        (one.subscription < other.subscription ? -1 : 1),
    );
  const columns: readonly Column<Subscription>[] = [
    { title: 'Name', cell: ({ subscription }) => <RowName name={subscription} /> },
    { title: 'State', cell: (each) => <StateBadge state={each.state} /> },
    { title: 'Lag', isRight: true, cell: (each) => <Lag {...each} /> },
    {
      title: 'Rate',
      isRight: true,
      isExtra: true,
      cell: ({ subscription }) => <Rate perSecond={rates.get(subscription)} />,
    },
    {
      title: 'Shards',
      isRight: true,
      isExtra: true,
      cell: ({ shards, workers }) => (
        <span className="text-soft">
          {shards} on {workers} {workers === 1 ? 'worker' : 'workers'}
        </span>
      ),
    },
    {
      title: 'Dead letters',
      isRight: true,
      cell: ({ deadLetters, waiting }) => (
        <Failures
          count={deadLetters}
          about={`${countText(waiting)} events of their streams wait`}
        />
      ),
    },
  ];
  return (
    <ListView
      title="Subscriptions"
      label="Subscriptions"
      aside={all === undefined ? undefined : `${all.length}, those with problems first`}
      filters={
        <Choices
          label="State"
          value={state}
          onChange={(value) => set({ state: value })}
          choices={[
            { value: undefined, title: 'All', count: all?.length },
            ...states.map((value) => ({
              value,
              title: value,
              count: all?.filter((each) => each.state === value).length,
            })),
          ]}
        />
      }
      list={listOf(query, rows)}
      columns={columns}
      keyOf={({ subscription }) => subscription}
      open={open}
      onOpen={(key) => set({ open: key })}
      isFiltered={state !== undefined}
      onReset={() => set({ state: undefined })}
      empty={
        <Empty title="No subscriptions">
          Modules register subscriptions, projections, reactors and sagas when they start.
        </Empty>
      }
    >
      <SubscriptionSheet name={open} onClose={() => set({ open: undefined })} />
    </ListView>
  );
}

function StateBadge({ state }: { readonly state: Subscription['state'] }) {
  const tone =
    state === 'running'
      ? 'good'
      : state === 'paused'
        ? 'warn'
        : state === 'lost'
          ? 'bad'
          : 'neutral';
  return <Badge tone={tone}>{state}</Badge>;
}

/** The age of the oldest event that is not processed, and how many follow it. */
export function Lag({
  seconds,
  behind,
  unit,
}: {
  readonly seconds: number;
  readonly behind: number;
  readonly unit: 'bytes' | 'events';
}) {
  if (behind === 0) return <span className="text-soft">current</span>;
  return (
    <span className={seconds >= 60 ? 'font-medium text-warn' : undefined}>
      <span className="whitespace-nowrap">{durationText(seconds * 1_000)}</span>
      <span className="block text-2xs font-normal whitespace-nowrap text-soft">
        {countText(behind)} {behind === 1 ? unit.slice(0, -1) : unit}
      </span>
    </span>
  );
}

function Rate({ perSecond }: { readonly perSecond: number | undefined }) {
  return (
    <span className="whitespace-nowrap text-soft">
      {perSecond === undefined ? '–' : `${rateText(perSecond)}/s`}
    </span>
  );
}

export function Failures({ count, about }: { readonly count: number; readonly about?: string }) {
  if (count === 0) return <span className="text-soft">0</span>;
  return (
    <span title={about} className="font-medium text-bad">
      {countText(count)}
    </span>
  );
}

/** Between the last two answers. */
function useRates(rows: readonly Subscription[], atMs: number): ReadonlyMap<string, number> {
  const before = useRef<Progress>(undefined);
  const [rates, setRates] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    const counted = rows.filter(({ unit }) => unit === 'events');
    if (counted.length === 0 || before.current?.atMs === atMs) return;
    const now = {
      atMs,
      positions: new Map(counted.map((each) => [each.subscription, each.position])),
    };
    setRates(ratesBetween(before.current, now));
    before.current = now;
  }, [rows, atMs]);
  return rates;
}

const shardColumns: readonly Column<Shard>[] = [
  { title: 'Shard', cell: ({ shard }) => <span className="mono">{shard}</span> },
  {
    title: 'Owner',
    cell: ({ owner }) =>
      owner === undefined ? (
        <span className="text-soft">no process</span>
      ) : (
        <span className="mono break-all">{owner}</span>
      ),
  },
  {
    title: 'Position',
    isRight: true,
    cell: ({ position }) => <span className="mono text-soft">{positionText(position)}</span>,
  },
];

function positionText(position: string | undefined): string {
  return position === undefined ? 'start' : sequenceOf(position).toLocaleString('en');
}

export function SubscriptionSheet({
  name = '',
  onClose,
}: {
  readonly name: string | undefined;
  readonly onClose: () => void;
}) {
  const query = useQuery({
    queryKey: ['subscription', name],
    queryFn: ({ signal }) => call('GET /admin/subscriptions/{name}', { params: { name }, signal }),
    enabled: name !== '',
    refetchInterval: poll,
  });
  return (
    <DetailSheet
      id={name}
      title={name}
      query={query}
      onClose={onClose}
      gone="No process has started this subscription on this store, or its name has changed."
    >
      {({ subscription, shards }) => (
        <>
          <Actions
            actions={actionsOf(subscription)}
            refresh={['subscription', 'subscriptions', 'projections', 'overview']}
          />
          <Facts>
            <Fact name="State">
              <StateBadge state={subscription.state} />
            </Fact>
            <Fact name="Lag">
              <Lag {...subscription} />
            </Fact>
            <Fact name="Position">
              <span className="mono">
                {positionText(subscription.position)} of {positionText(subscription.head)}
              </span>
            </Fact>
            <Fact name="Dead letters">
              <Failures count={subscription.deadLetters} />
              {subscription.deadLetters > 0 ? (
                <Link to="/failures" className={linkStyle}>
                  Show causes
                </Link>
              ) : null}
            </Fact>
            <Fact name="Waiting events">
              {subscription.waiting === 0 ? (
                'none'
              ) : (
                <Link
                  to="/failures"
                  search={{ show: 'parked', where: subscription.subscription }}
                  className={linkStyle}
                >
                  {countText(subscription.waiting)}, of streams with a failed event
                </Link>
              )}
            </Fact>
          </Facts>
          <div className="overflow-hidden rounded-md border border-line">
            <Table
              label="Shards"
              columns={shardColumns}
              rows={shards}
              keyOf={({ shard }) => String(shard)}
            />
          </div>
        </>
      )}
    </DetailSheet>
  );
}

function actionsOf({ subscription: name, state, deadLetters }: Subscription): readonly Action[] {
  const resume: Action = {
    route: 'POST /admin/subscriptions/{name}/resume',
    label: 'Resume',
    icon: Play,
    isMain: true,
    run: async () => {
      await call('POST /admin/subscriptions/{name}/resume', { params: { name } });
      return 'Resumed. It continues after its position.';
    },
  };
  const pause: Action = {
    route: 'POST /admin/subscriptions/{name}/pause',
    label: 'Pause',
    icon: Pause,
    run: async () => {
      await call('POST /admin/subscriptions/{name}/pause', { params: { name } });
      return 'Paused in all processes. Its events wait.';
    },
  };
  const replay: Action = {
    route: 'POST /admin/dlq/replay',
    label: `Replay ${countText(deadLetters)} dead ${deadLetters === 1 ? 'letter' : 'letters'}`,
    icon: RotateCw,
    run: async () => {
      const body = { subscription: name };
      const { requested } = await call('POST /admin/dlq/replay', { body });
      return `Replay of ${countText(requested)} requested.`;
    },
  };
  return [state === 'paused' ? resume : pause, ...(deadLetters > 0 ? [replay] : [])];
}

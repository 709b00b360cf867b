// Streams that a dead letter has parked: its error, the events that wait for it, and its replay or discard.

import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { RotateCw, Trash2 } from 'lucide-react';
import type { ReactNode } from 'react';
import type { DeadLetter, ParkedStream } from '../api.gen.ts';
import { call, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { countText } from '../lib/format.ts';
import { pageSize, poll, useList } from '../lib/list.ts';
import { allows, useSession } from '../lib/session.ts';
import type { FailureSearch } from '../router.tsx';
import { Actions, type Action } from '../ui/actions.tsx';
import { FilterBar, TextFilters } from '../ui/filters.tsx';
import { JsonView } from '../ui/json-view.tsx';
import { ListView, RowName, Table, type Column } from '../ui/list-view.tsx';
import {
  Ago,
  Badge,
  Button,
  cx,
  Fact,
  Facts,
  linkStyle,
  Part,
  StreamLink,
  Time,
  TraceLink,
} from '../ui/parts.tsx';
import { DetailSheet } from '../ui/sheet.tsx';
import { Empty, Failed, Loading, MoreRows } from '../ui/states.tsx';
import { CauseDetail } from './failure-group.tsx';

const letterOf = ({ id }: ParkedStream): string => id;

const columns: readonly Column<ParkedStream>[] = [
  {
    title: 'Stream',
    cell: ({ stream, subscription }) => <RowName name={stream} about={subscription} />,
  },
  {
    title: 'Blocked by',
    isExtra: true,
    cell: ({ error, cause, eventType, revision }) => (
      <span className="block max-w-md">
        <span className="line-clamp-2 break-words text-bad">{error}</span>
        <span className="mono block text-2xs break-all text-soft">
          {cause?.name === undefined ? '' : `${cause.name} · `}
          {eventType} @{revision}
        </span>
      </span>
    ),
  },
  {
    title: 'Tenant',
    isExtra: true,
    cell: ({ tenant }) => <span className="text-soft">{tenant}</span>,
  },
  {
    title: 'Waiting',
    isRight: true,
    cell: ({ waiting, replayRequestedAt }) => (
      <span className="flex flex-col items-end gap-1">
        <WaitingCount count={waiting} />
        {replayRequestedAt === null ? null : <Badge tone="accent">replaying</Badge>}
      </span>
    ),
  },
  { title: 'Since', isRight: true, cell: ({ since }) => <Ago at={since} /> },
];

function WaitingCount({ count }: { readonly count: number }) {
  if (count === 0) return <span className="text-soft">none</span>;
  return (
    <Badge tone="warn">
      {countText(count)} {count === 1 ? 'event' : 'events'}
    </Badge>
  );
}

export function ParkedStreams({ tabs }: { readonly tabs: ReactNode }) {
  const { where, tenant, stream, open } = useSearch({ from: '/failures' });
  const change = useSearchChange<FailureSearch>('open');
  const list = useList({
    queryKey: ['parked', where, tenant, stream],
    load: (cursor, signal) =>
      call('GET /admin/parked-streams', {
        query: { subscription: where, tenant, stream, cursor, limit: pageSize },
        signal,
      }),
    keyOf: letterOf,
  });
  return (
    <ListView
      title="Failures"
      label="Parked streams"
      aside="streams whose events wait for a dead letter, the longest first"
      filters={
        <FilterBar choices={tabs}>
          <TextFilters
            fields={[
              { name: 'where', title: 'Subscription', example: 'sub:shop:mail:v1' },
              { name: 'stream', title: 'Stream', example: 'shop.order.v1-core-7' },
              { name: 'tenant', title: 'Tenant', example: 'core' },
            ]}
            values={{ where, stream, tenant }}
            onChange={(values) => change({ ...values, open: undefined })}
          />
        </FilterBar>
      }
      list={list}
      columns={columns}
      keyOf={letterOf}
      open={open}
      onOpen={(id) => change({ open: id })}
      isFiltered={[where, tenant, stream].some((each) => each !== undefined)}
      onReset={() => change({ where: undefined, tenant: undefined, stream: undefined })}
      empty={
        <Empty title="No stream is parked">
          Subscriptions with onDeadLetter: 'park' stop a stream at its dead letter; the events after
          it wait here. Other streams continue.
        </Empty>
      }
    >
      <ParkedSheet id={open} onClose={() => change({ open: undefined })} />
    </ListView>
  );
}

function ParkedSheet({
  id = '',
  onClose,
}: {
  readonly id: string | undefined;
  readonly onClose: () => void;
}) {
  const query = useQuery({
    queryKey: ['parked-letter', id],
    queryFn: ({ signal }) => call('GET /admin/dlq/{id}', { params: { id }, signal }),
    enabled: id !== '',
    refetchInterval: poll,
  });
  return (
    <DetailSheet
      id={id}
      title={query.data?.stream ?? 'Parked stream'}
      query={query}
      onClose={onClose}
      gone="No dead letter has this id."
    >
      {(letter) => (
        <>
          <LetterActions letter={letter} />
          <p className="mono rounded-md bg-bad-wash px-3 py-2 text-xs break-words text-bad">
            {letter.error}
          </p>
          {letter.cause === null ? null : (
            <div className="text-xs">
              <CauseDetail cause={letter.cause} />
            </div>
          )}
          <LetterFacts letter={letter} />
          <Part title="Waiting events">
            {letter.status === 'pending' && letter.parked ? (
              <WaitingEvents id={letter.id} />
            ) : (
              <p className="text-xs text-soft">
                The dead letter is {letter.status}, so the stream is no longer parked by it.
              </p>
            )}
          </Part>
          <Part title="Payload of the dead letter">
            <JsonView value={letter.payload} label="the payload" />
          </Part>
        </>
      )}
    </DetailSheet>
  );
}

function LetterActions({ letter: { id, status } }: { readonly letter: DeadLetter }) {
  const ofPending: readonly Action[] = [
    {
      route: 'POST /admin/dlq/{id}/replay',
      label: 'Replay',
      icon: RotateCw,
      isMain: true,
      async run() {
        await call('POST /admin/dlq/{id}/replay', { params: { id } });
        return 'Replay requested. If it succeeds, the waiting events follow in order.';
      },
    },
    {
      route: 'POST /admin/dlq/{id}/discard',
      label: 'Discard',
      icon: Trash2,
      confirm: 'The handler never gets this event. The stream continues with the waiting events.',
      asks: 'Reason, stored with the dead letter',
      async run(reason) {
        await call('POST /admin/dlq/{id}/discard', { params: { id }, body: { reason } });
        return 'Discarded. The stream continues with the waiting events.';
      },
    },
  ];
  // The message of an action stays when the action has changed the letter.
  const actions = status === 'pending' ? ofPending : [];
  return <Actions actions={actions} refresh={['parked', 'parked-letter', 'failures']} />;
}

function LetterFacts({ letter }: { readonly letter: DeadLetter }) {
  const { stream, handler, createdAt, eventType, revision, attempts, tenant } = letter;
  const { correlationId, replayRequestedAt, replayedBy, discardReason } = letter;
  const maySee = allows(useSession(), 'GET /admin/subscriptions');
  return (
    <Facts>
      <Fact name="Stream">
        <StreamLink stream={stream} />
      </Fact>
      <Fact name="Subscription">
        {maySee ? (
          <Link
            to="/subscriptions"
            search={{ open: handler }}
            className={cx('mono break-all', linkStyle)}
          >
            {handler}
          </Link>
        ) : (
          <span className="mono break-all">{handler}</span>
        )}
      </Fact>
      <Fact name="Blocked by">
        <span className="mono break-all">
          {eventType} @{revision}
        </span>
      </Fact>
      <Fact name="Since">
        <Time at={createdAt} />
      </Fact>
      <Fact name="Attempts">{attempts}</Fact>
      <Fact name="Tenant">{tenant}</Fact>
      <Fact name="Trace">
        <TraceLink id={correlationId} />
      </Fact>
      {replayRequestedAt === null ? null : (
        <Fact name="Replay requested">
          <Time at={replayRequestedAt} />
          <span className="text-soft">by {replayedBy}</span>
        </Fact>
      )}
      {discardReason === null ? null : <Fact name="Discarded">{discardReason}</Fact>}
    </Facts>
  );
}

type Waiting = ResponseOf<'GET /admin/parked-streams/{letter}/events'>['items'][number];

const waitingColumns: readonly Column<Waiting>[] = [
  {
    title: 'Event',
    cell: ({ type, eventId }) => (
      <RowName name={type ?? 'no longer in the store'} about={type === undefined ? eventId : ''} />
    ),
  },
  {
    title: 'Revision',
    isRight: true,
    cell: ({ revision }) => <span className="mono text-soft">{revision ?? '–'}</span>,
  },
  {
    title: 'Recorded',
    isRight: true,
    cell: ({ recordedAt }) => (recordedAt === undefined ? '–' : <Time at={recordedAt} />),
  },
];

const eventOf = ({ eventId }: Waiting): string => eventId;

function WaitingEvents({ id }: { readonly id: string }) {
  const list = useList({
    queryKey: ['parked', 'events', id],
    load: (cursor, signal) =>
      call('GET /admin/parked-streams/{letter}/events', {
        params: { letter: id },
        query: { cursor, limit: pageSize },
        signal,
      }),
    keyOf: eventOf,
  });
  const { rows, error, isPending, fresh, showFresh } = list;
  if (error !== null) {
    return <Failed error={error} onRetry={list.retry} />;
  }
  if (isPending) return <Loading rows={3} />;
  if (rows.length === 0) {
    return <p className="text-xs text-soft">None so far: the next event of this stream waits.</p>;
  }
  return (
    <>
      <div className="overflow-hidden rounded-md border border-line">
        <Table label="Waiting events" columns={waitingColumns} rows={rows} keyOf={eventOf} />
      </div>
      {fresh > 0 ? <Button onClick={showFresh}>Show {countText(fresh)} new</Button> : null}
      <MoreRows page={list} />
    </>
  );
}

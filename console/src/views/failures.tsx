// Everything that failed, grouped by cause: replay or discard a whole group, or one of its failures.

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { CheckCheck, CircleCheck } from 'lucide-react';
import { useRef } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { countText } from '../lib/format.ts';
import type { BulkFilter, BulkVerb } from '../lib/bulk.ts';
import { listOf } from '../lib/list.ts';
import { allows, useSession } from '../lib/session.ts';
import type { FailureSearch } from '../router.tsx';
import { BulkWindow } from '../ui/bulk-window.tsx';
import { Choices, FilterBar, TextFilters } from '../ui/filters.tsx';
import { ListBox, type Column } from '../ui/list-view.tsx';
import { Ago, Badge, Button, PageTitle } from '../ui/parts.tsx';
import { Sheet } from '../ui/sheet.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { GroupDetail } from './failure-group.tsx';
import { ParkedStreams } from './parked-streams.tsx';

type Group = ResponseOf<'GET /admin/failures'>['items'][number];

const sourceNames: Readonly<Record<Group['source'], string>> = {
  'dead-letter': 'dead letter',
  delivery: 'delivery',
  job: 'job',
  bus: 'bus message',
  saga: 'parked saga',
};

const sources = ['dead-letter', 'delivery', 'job', 'bus', 'saga'] as const;

const sourceTitles: Readonly<Record<Group['source'], string>> = {
  'dead-letter': 'Dead letters',
  delivery: 'Deliveries',
  job: 'Jobs',
  bus: 'Bus',
  saga: 'Sagas',
};

/** A bulk action names the causes that are shown, so hidden ones are not changed. */
const causesMax = 500;

export function FailuresView() {
  const { show } = useSearch({ from: '/failures' });
  return show === 'parked' ? <ParkedStreams tabs={<Tabs />} /> : <Causes />;
}

function Tabs() {
  const { show } = useSearch({ from: '/failures' });
  const navigate = useNavigate({ from: '/failures' });
  return (
    <Choices
      label="What is shown"
      value={show}
      onChange={(value) => void navigate({ search: { show: value }, replace: true })}
      choices={[
        { value: undefined, title: 'Causes' },
        { value: 'parked', title: 'Parked streams' },
      ]}
    />
  );
}

function Causes() {
  const session = useSession();
  const search = useSearch({ from: '/failures' });
  const { group, source, state, where, type, tenant } = search;
  const change = useSearchChange<FailureSearch>('group');
  const query = useQuery({
    queryKey: ['failures', source, state, where, type, tenant],
    queryFn: ({ signal }) =>
      call('GET /admin/failures', { query: { source, state, where, type, tenant }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 4_000,
  });
  const { data } = query;
  const groups = data?.items ?? [];
  const open = (fingerprint: string | undefined): void => change({ group: fingerprint });
  const none = { source: undefined, state: undefined, where: undefined, type: undefined };
  const isFiltered = [source, state, where, type, tenant].some((each) => each !== undefined);
  const chosen = groups.slice(0, causesMax).map(({ fingerprint }) => fingerprint);
  const filter: BulkFilter | undefined =
    group !== undefined
      ? { fingerprint: group, tenant }
      : chosen.length === 0
        ? undefined
        : { source, where, type, tenant, fingerprints: chosen };
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-4 p-4 sm:p-6">
      <PageTitle title="Failures">
        {data === undefined ? null : (
          <span className="text-xs text-soft">
            {countText(data.looked)} {data.looked === 1 ? 'failure' : 'failures'}, {groups.length}{' '}
            {groups.length === 1 ? 'cause' : 'causes'}
            {data.isComplete ? '' : '; there are more, the oldest were read'}
          </span>
        )}
      </PageTitle>
      <FilterBar
        choices={
          <>
            <Tabs />
            <Choices
              label="Kind"
              value={source}
              onChange={(value) => change({ source: value, group: undefined })}
              choices={[
                { value: undefined, title: 'All' },
                ...sources.map((value) => ({ value, title: sourceTitles[value] })),
              ]}
            />
            <Choices
              label="State"
              value={state}
              onChange={(value) => change({ state: value, group: undefined })}
              choices={[
                { value: undefined, title: 'Open' },
                { value: 'resolved', title: 'Resolved' },
                { value: 'ignored', title: 'Ignored' },
                { value: 'all', title: 'Any state' },
              ]}
            />
            {allows(session, 'POST /admin/bulk') && groups.length > 0 ? (
              <Button
                data-route="POST /admin/bulk"
                className="sm:ml-auto"
                onClick={() => change({ all: 'replay', group: undefined })}
              >
                <CheckCheck size={14} aria-hidden />
                All that match…
              </Button>
            ) : null}
          </>
        }
      >
        <TextFilters
          fields={[
            { name: 'where', title: 'Place', example: 'webhook:partner' },
            { name: 'type', title: 'Type', example: 'order.paid.v1' },
            { name: 'tenant', title: 'Tenant', example: 'core' },
          ]}
          values={{ where, type, tenant }}
          onChange={(values) => change({ ...values, group: undefined })}
        />
      </FilterBar>
      <ListBox
        label="Causes of failures"
        list={listOf(query, data?.items)}
        columns={columns}
        keyOf={keyOf}
        open={group}
        onOpen={open}
        isFiltered={isFiltered}
        onReset={() => change({ ...none, tenant: undefined })}
        empty={
          <div className="flex flex-col items-center gap-2 px-6 py-14 text-center">
            <CircleCheck size={28} aria-hidden className="text-good" />
            <p className="font-medium">Nothing has failed</p>
            <p className="text-xs text-soft">
              Events, messages and jobs that fail for good appear here, one row per cause.
            </p>
          </div>
        }
      />
      <GroupSheet
        fingerprint={group}
        listed={groups.find((each) => keyOf(each) === group)}
        isListed={data !== undefined}
        tenant={tenant}
        onClose={() => open(undefined)}
        onAll={(all) => change({ all })}
      />
      <BulkWindow
        search={search}
        filter={filter}
        isKnown={data !== undefined}
        about={
          group !== undefined
            ? 'all failures of this cause'
            : groups.length > causesMax
              ? `the failures of the latest ${causesMax} causes`
              : 'all failures that match'
        }
        onChange={change}
      />
    </div>
  );
}

const keyOf = ({ fingerprint }: Group): string => fingerprint;

const columns: readonly Column<Group>[] = [
  { title: 'Cause', cell: (group) => <CauseName group={group} /> },
  { title: 'Over time', isExtra: true, cell: ({ buckets }) => <Trend buckets={buckets} /> },
  {
    title: 'Failures',
    isRight: true,
    cell: ({ count }) => (
      <span className="text-base font-semibold text-bad">{countText(count)}</span>
    ),
  },
  { title: 'Last', isRight: true, cell: ({ last }) => <Ago at={last} /> },
];

function CauseName({
  group: { where, title, source, count, final, parked, tenants, decision },
}: {
  readonly group: Group;
}) {
  return (
    <>
      <span className="block text-sm font-medium wrap-anywhere">{title}</span>
      <span className="mt-0.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-soft">
        <Badge>{sourceNames[source]}</Badge>
        <span className="mono break-all">{where}</span>
        {parked > 0 ? <span>· parks {countText(parked)}</span> : null}
        {tenants.length > 0 ? (
          <span>· {tenants.length === 1 ? tenants[0] : `${tenants.length} tenants`}</span>
        ) : null}
        {decision !== undefined && decision.note !== '' ? (
          <span className="wrap-anywhere">· {decision.note}</span>
        ) : null}
        {final < count ? <Badge tone="warn">{countText(count - final)} retrying</Badge> : null}
      </span>
    </>
  );
}

function Trend({ buckets }: { readonly buckets: readonly number[] }) {
  const top = Math.max(1, ...buckets);
  return (
    <svg
      viewBox="0 0 96 24"
      role="img"
      aria-label="Failures over time"
      className="h-6 w-24 text-bad"
    >
      {buckets.map((count, at) => (
        <rect
          key={at}
          x={(at * 96) / buckets.length}
          width={96 / buckets.length - 1}
          y={24 - Math.max(1.5, (count / top) * 22)}
          height={Math.max(1.5, (count / top) * 22)}
          rx="0.5"
          fill="currentColor"
          opacity={count === 0 ? 0.2 : 0.85}
        />
      ))}
    </svg>
  );
}

/** Read again when the row of the cause changes, so that an operator sees what another one did. */
function GroupSheet({
  fingerprint,
  listed,
  isListed,
  tenant,
  onClose,
  onAll,
}: {
  readonly fingerprint: string | undefined;
  /** Its row. Undefined: the list does not contain it, or no longer. */
  readonly listed: Group | undefined;
  readonly isListed: boolean;
  readonly tenant: string | undefined;
  readonly onClose: () => void;
  readonly onAll: (action: BulkVerb) => void;
}) {
  const seen = useRef<Group>(undefined);
  if (listed !== undefined) seen.current = listed;
  const row = seen.current?.fingerprint === fingerprint ? seen.current : undefined;
  const { data: latest, error } = useQuery({
    queryKey: ['failure-group', fingerprint, tenant, row?.count, row?.last, row?.decision?.at],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      call('GET /admin/failures/{fingerprint}', {
        params: { fingerprint: fingerprint ?? '' },
        query: { tenant },
        signal,
      }),
    enabled: fingerprint !== undefined && isListed,
    refetchOnMount: 'always',
  });
  const data = latest?.group.fingerprint === fingerprint ? latest : undefined;
  return (
    <Sheet
      isOpen={fingerprint !== undefined}
      onClose={onClose}
      title={data?.group.where ?? 'Failures'}
    >
      {fingerprint === undefined ? null : error !== null && data === undefined ? (
        <Failed error={error} />
      ) : data === undefined ? (
        <Loading />
      ) : (
        <GroupDetail
          key={fingerprint}
          detail={data}
          isGone={row !== undefined && listed === undefined}
          tenant={tenant}
          onAll={onAll}
        />
      )}
    </Sheet>
  );
}

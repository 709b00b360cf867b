// Everything that failed, grouped by cause: replay or discard a whole group, or one of its failures.

import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { CircleCheck } from 'lucide-react';
import { call, type ResponseOf } from '../lib/api.ts';
import { countText } from '../lib/format.ts';
import { useShortcuts } from '../lib/keys.ts';
import { Ago, Badge, cx, PageTitle } from '../ui/parts.tsx';
import { Sheet } from '../ui/sheet.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { GroupDetail } from './failure-group.tsx';

type Group = ResponseOf<'GET /admin/failures'>['items'][number];

const sourceNames: Readonly<Record<Group['source'], string>> = {
  'dead-letter': 'dead letter',
  delivery: 'delivery',
  job: 'job',
  bus: 'bus message',
  saga: 'parked saga',
};

export function FailuresView() {
  const { group } = useSearch({ from: '/failures' });
  const navigate = useNavigate({ from: '/failures' });
  const { data, error, refetch } = useQuery({
    queryKey: ['failures'],
    queryFn: ({ signal }) => call('GET /admin/failures', { signal }),
    refetchInterval: 4_000,
  });
  const groups = data?.items ?? [];
  const selected = groups.findIndex(({ fingerprint }) => fingerprint === group);
  const open = (fingerprint: string | undefined): void =>
    void navigate({ search: { group: fingerprint }, replace: true });
  const step = (by: number): void =>
    open(groups[Math.max(0, Math.min(selected + by, groups.length - 1))]?.fingerprint);
  useShortcuts({ j: () => step(1), k: () => step(-1), Escape: () => open(undefined) });
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
      <div className="overflow-hidden rounded-lg border border-line bg-panel">
        {error !== null && data === undefined ? (
          <Failed error={error} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Loading />
        ) : groups.length === 0 ? (
          <div className="flex flex-col items-center gap-2 px-6 py-14 text-center">
            <CircleCheck size={28} aria-hidden className="text-good" />
            <p className="font-medium">Nothing has failed</p>
            <p className="text-xs text-soft">
              Events, messages and jobs that fail for good appear here, one row per cause.
            </p>
          </div>
        ) : (
          <ul className="divide-y divide-line">
            {groups.map((each, index) => (
              <li key={each.fingerprint}>
                <GroupRow
                  group={each}
                  isSelected={index === selected}
                  onOpen={() => open(each.fingerprint)}
                />
              </li>
            ))}
          </ul>
        )}
      </div>
      <GroupSheet fingerprint={group} onClose={() => open(undefined)} />
    </div>
  );
}

function GroupRow({
  group,
  isSelected,
  onOpen,
}: {
  readonly group: Group;
  readonly isSelected: boolean;
  readonly onOpen: () => void;
}) {
  const { where, title, source, count, final, parked, tenants, last, buckets } = group;
  return (
    <button
      type="button"
      aria-current={isSelected}
      onClick={onOpen}
      className={cx(
        'flex w-full flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-left hover:bg-hover',
        isSelected && 'bg-accent-wash hover:bg-accent-wash',
      )}
    >
      <span className="min-w-0 flex-1 basis-72">
        <span className="block font-medium break-words">{title}</span>
        <span className="mt-0.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-soft">
          <Badge>{sourceNames[source]}</Badge>
          <span className="mono break-all">{where}</span>
          {parked > 0 ? <span>· parks {countText(parked)}</span> : null}
          {tenants.length > 0 ? (
            <span>· {tenants.length === 1 ? tenants[0] : `${tenants.length} tenants`}</span>
          ) : null}
          {group.decision !== undefined && group.decision.note !== '' ? (
            <span className="truncate">· {group.decision.note}</span>
          ) : null}
          {final < count ? <Badge tone="warn">{countText(count - final)} tried again</Badge> : null}
        </span>
      </span>
      <Trend buckets={buckets} />
      <span className="text-base font-semibold text-bad sm:w-16 sm:text-right">
        {countText(count)}
      </span>
      <span className="text-xs sm:w-24 sm:text-right">
        <Ago at={last} />
      </span>
    </button>
  );
}

function Trend({ buckets }: { readonly buckets: readonly number[] }) {
  const top = Math.max(1, ...buckets);
  return (
    <svg
      viewBox="0 0 96 24"
      role="img"
      aria-label="Failures over time"
      className="hidden h-6 w-24 text-bad sm:block"
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

function GroupSheet({
  fingerprint,
  onClose,
}: {
  readonly fingerprint: string | undefined;
  readonly onClose: () => void;
}) {
  const { data, error } = useQuery({
    queryKey: ['failure-group', fingerprint],
    queryFn: ({ signal }) =>
      call('GET /admin/failures/{fingerprint}', {
        params: { fingerprint: fingerprint ?? '' },
        signal,
      }),
    enabled: fingerprint !== undefined,
    refetchOnMount: 'always',
  });
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
        <GroupDetail key={fingerprint} detail={data} />
      )}
    </Sheet>
  );
}

// Everything that failed, grouped by cause: replay or discard a whole group, or one of its failures.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { CircleCheck, RotateCw, Trash2 } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { isRunning, useBulk, type BulkFilter } from '../lib/bulk.ts';
import { countText } from '../lib/format.ts';
import { useShortcuts } from '../lib/keys.ts';
import { allows, useSession } from '../lib/session.ts';
import { Ago, Badge, Button, cx, PageTitle, StreamLink, Time, TraceLink } from '../ui/parts.tsx';
import { Modal, Sheet } from '../ui/sheet.tsx';
import { Failed, Loading } from '../ui/states.tsx';

type Group = ResponseOf<'GET /admin/failures'>['items'][number];
type Detail = ResponseOf<'GET /admin/failures/{fingerprint}'>;

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

function GroupDetail({ detail: { group, items, until } }: { readonly detail: Detail }) {
  const client = useQueryClient();
  const session = useSession();
  const [isDiscarding, setDiscarding] = useState(false);
  const { source, fingerprint, final } = group;
  const refresh = (): void => void client.invalidateQueries({ queryKey: ['failures'] });
  const bulk = useBulk(refresh);
  const mayAct = allows(session, 'POST /admin/bulk');
  const replay = (matched: number, ids?: readonly string[]): void =>
    bulk.start({ action: 'replay', filter: filterOf(group, ids), until, matched });
  const isBusy = bulk.isPending || isRunning(bulk.action);
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-col gap-2">
        <p className="text-sm font-medium break-words">{group.title}</p>
        <p className="flex flex-wrap items-center gap-x-2 text-xs text-soft">
          <Badge tone="bad">
            {countText(group.count)} {group.count === 1 ? 'failure' : 'failures'}
          </Badge>
          first <Time at={group.first} /> last <Time at={group.last} />
        </p>
      </div>
      {mayAct && final > 0 ? (
        <div className="flex flex-wrap gap-2">
          <Button look="primary" disabled={isBusy} onClick={() => replay(final)}>
            <RotateCw size={14} aria-hidden />
            {isBusy ? 'Replaying…' : `Replay ${countText(final)}`}
          </Button>
          {source === 'dead-letter' || source === 'bus' ? (
            <Button disabled={isBusy} onClick={() => setDiscarding(true)}>
              <Trash2 size={14} aria-hidden />
              Discard {countText(final)}…
            </Button>
          ) : null}
        </div>
      ) : null}
      <BulkStatus bulk={bulk} />
      <Decision key={fingerprint} group={group} onDecided={refresh} />
      <ul className="divide-y divide-line overflow-hidden rounded-md border border-line">
        {items.map((each) => (
          <li key={each.id} className="flex flex-col gap-1.5 px-3 py-2.5 text-xs">
            <div className="flex flex-wrap items-center gap-2">
              <span className="mono min-w-0 truncate font-medium">{each.type}</span>
              {each.isFinal ? null : <Badge tone="warn">tried again</Badge>}
              <span className="ml-auto">
                <Time at={each.at} />
              </span>
            </div>
            <p className="mono break-words text-bad">{each.error}</p>
            <CauseDetail cause={each.cause} />
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-soft">
              <span>
                {each.attempts} {each.attempts === 1 ? 'attempt' : 'attempts'}
              </span>
              {each.stream === undefined ? null : <StreamLink stream={each.stream} />}
              {each.correlationId === undefined ? null : (
                <TraceLink id={each.correlationId}>trace</TraceLink>
              )}
              {mayAct && each.isFinal ? (
                <button
                  type="button"
                  disabled={isBusy}
                  onClick={() => replay(1, [each.id])}
                  className="ml-auto text-accent hover:underline"
                >
                  Replay this one
                </button>
              ) : null}
            </div>
          </li>
        ))}
      </ul>
      {group.count > items.length ? (
        <p className="text-xs text-soft">
          The latest {items.length} of {countText(group.count)} are shown; Replay and Discard act on
          all of them.
        </p>
      ) : null}
      <DiscardDialog
        count={final}
        isOpen={isDiscarding}
        isPending={isBusy}
        onClose={() => setDiscarding(false)}
        onDiscard={(reason) => {
          setDiscarding(false);
          bulk.start({ action: 'discard', filter: filterOf(group), until, matched: final, reason });
        }}
      />
    </div>
  );
}

function filterOf({ source, fingerprint }: Group, ids?: readonly string[]): BulkFilter {
  return { source, fingerprint, ...(ids === undefined ? {} : { ids: [...ids] }) };
}

/** The progress of a bulk action, and its outcome. */
function BulkStatus({
  bulk: { action, error, cancel },
}: {
  readonly bulk: ReturnType<typeof useBulk>;
}) {
  if (error !== null) {
    return (
      <p role="alert" className="rounded-md bg-bad-wash px-3 py-2 text-xs text-bad">
        {error.message}
      </p>
    );
  }
  if (action === undefined) return null;
  const { done, unchanged, matched, state } = action;
  const verb = action.action === 'replay' ? 'Replay requested for' : 'Discarded';
  return (
    <div role="status" className="rounded-md bg-good-wash px-3 py-2 text-xs text-good">
      <p className="flex items-center gap-2">
        {verb} {countText(done)} of {countText(matched)}.
        {unchanged > 0 ? ` ${countText(unchanged)} needed no change.` : ''}
        {state === 'failed' || state === 'cancelled' ? ` The action was ${state}.` : ''}
        {isRunning(action) ? (
          <button type="button" onClick={cancel} className="ml-auto underline">
            Stop
          </button>
        ) : null}
      </p>
      {isRunning(action) ? (
        <progress
          aria-label="Progress"
          max={matched}
          value={done + unchanged}
          className="mt-1.5 h-1 w-full"
        />
      ) : null}
    </div>
  );
}

/** Resolve or ignore the cause until it happens again, and a note. */
function Decision({ group, onDecided }: { readonly group: Group; readonly onDecided: () => void }) {
  const session = useSession();
  const { fingerprint, decision, state } = group;
  const [note, setNote] = useState(decision?.note ?? '');
  const decide = useMutation({
    mutationFn: (body: { readonly state?: Group['state']; readonly note?: string }) =>
      call('POST /admin/failures/{fingerprint}/decision', { params: { fingerprint }, body }),
    onSuccess: onDecided,
  });
  if (!allows(session, 'POST /admin/failures/{fingerprint}/decision')) return null;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    decide.mutate({ note: note.trim() });
  };
  const now = decide.data?.state ?? state;
  return (
    <form onSubmit={submit} className="flex flex-col gap-2 text-xs">
      <div className="flex flex-wrap items-center gap-2">
        {now === 'open' ? (
          <>
            <Button onClick={() => decide.mutate({ state: 'resolved' })}>Resolve</Button>
            <Button onClick={() => decide.mutate({ state: 'ignored' })}>Ignore</Button>
          </>
        ) : (
          <>
            <Badge>{now}</Badge>
            <Button onClick={() => decide.mutate({ state: 'open' })}>Reopen</Button>
          </>
        )}
        <span className="text-soft">
          {now === 'open' && decision !== undefined && decision.state !== 'open'
            ? `Was ${decision.state} by ${decision.by}, and happened again.`
            : 'Hidden until it happens again.'}
        </span>
      </div>
      <div className="flex gap-2">
        <input
          aria-label="Note"
          placeholder="Note for other operators"
          maxLength={2_000}
          value={note}
          onChange={({ target }) => setNote(target.value)}
          className="h-8 min-w-0 flex-1 rounded-md border border-strong bg-page px-2"
        />
        <Button type="submit" disabled={decide.isPending || note === (decision?.note ?? '')}>
          Save note
        </Button>
      </div>
      {decide.error === null ? null : (
        <p role="alert" className="text-bad">
          {decide.error.message}
        </p>
      )}
    </form>
  );
}

/** Name and code of the error, and its stack. */
function CauseDetail({ cause }: { readonly cause: Detail['items'][number]['cause'] }) {
  const { name, code, stack } = cause;
  const title = [name, code].filter((part) => part !== undefined).join(' · ');
  if (stack === undefined) return title === '' ? null : <p className="mono text-soft">{title}</p>;
  return (
    <details>
      <summary className="mono cursor-pointer text-soft">{title} · stack</summary>
      <pre className="mt-1 max-h-60 overflow-auto rounded-md bg-page p-2 text-[11px]">{stack}</pre>
    </details>
  );
}

function DiscardDialog({
  count,
  isOpen,
  isPending,
  onClose,
  onDiscard,
}: {
  readonly count: number;
  readonly isOpen: boolean;
  readonly isPending: boolean;
  readonly onClose: () => void;
  readonly onDiscard: (reason: string) => void;
}) {
  const [reason, setReason] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onDiscard(reason.trim());
  };
  return (
    <Modal
      isOpen={isOpen}
      onClose={onClose}
      title={`Discard ${countText(count)} ${count === 1 ? 'failure' : 'failures'}?`}
    >
      <form onSubmit={submit} className="flex flex-col gap-3 p-4">
        <p className="text-xs text-soft">
          The handler never processes these events. Later events of their aggregates continue. This
          cannot be undone.
        </p>
        <label htmlFor="reason" className="text-xs font-medium">
          Reason, stored with each dead letter
        </label>
        <input
          id="reason"
          required
          maxLength={2_000}
          value={reason}
          onChange={({ target }) => setReason(target.value)}
          className="h-9 rounded-md border border-strong bg-page px-3"
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={isPending || reason.trim() === ''}>
            Discard {countText(count)}
          </Button>
        </div>
      </form>
    </Modal>
  );
}

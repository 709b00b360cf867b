// One cause of failures: replay or discard all of them or one, decide on the cause, and see stacks and attempts.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { FastForward, RotateCw, Trash2 } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { isRunning, useBulk, type BulkFilter, type BulkVerb } from '../lib/bulk.ts';
import { countText } from '../lib/format.ts';
import { allows, useSession } from '../lib/session.ts';
import { BulkStatus } from '../ui/bulk-status.tsx';
import { DeliveryAttempts } from '../ui/delivery-attempts.tsx';
import { JsonView } from '../ui/json-view.tsx';
import {
  Badge,
  ChangeButton,
  cx,
  linkStyle,
  StreamLink,
  Time,
  TraceLink,
  useOffline,
} from '../ui/parts.tsx';

type Detail = ResponseOf<'GET /admin/failures/{fingerprint}'>;
type Group = Detail['group'];

export function GroupDetail({
  detail: { group, items, until },
  isGone,
  tenant,
  onAll,
}: {
  readonly detail: Detail;
  /** The list no longer contains the cause. */
  readonly isGone: boolean;
  readonly tenant: string | undefined;
  /** Opens the window that changes all failures of the group. */
  readonly onAll: (action: BulkVerb) => void;
}) {
  const client = useQueryClient();
  const session = useSession();
  const offline = useOffline();
  const { source, fingerprint, final, count } = group;
  const refresh = (): void => void client.invalidateQueries({ queryKey: ['failures'] });
  const bulk = useBulk(refresh);
  const mayAct = !isGone && allows(session, 'POST /admin/bulk');
  const start = (action: 'replay' | 'retry', matched: number, ids?: readonly string[]): void =>
    bulk.start({ action, filter: { ...filterOf(group, ids), tenant }, until, matched });
  const retried = count - final;
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
        {source === 'dead-letter' && group.parked > 0 ? (
          <Link
            to="/failures"
            search={{ show: 'parked', where: group.where }}
            className={cx('self-start text-xs', linkStyle)}
          >
            {countText(group.parked)} parked {group.parked === 1 ? 'stream' : 'streams'} and the
            events that wait
          </Link>
        ) : null}
      </div>
      {mayAct ? (
        <div className="flex flex-wrap gap-2">
          {final > 0 ? (
            <ChangeButton look="primary" disabled={isBusy} onClick={() => start('replay', final)}>
              <RotateCw size={14} aria-hidden />
              {isBusy ? 'Working…' : `Replay ${countText(final)}`}
            </ChangeButton>
          ) : null}
          {retried > 0 ? (
            <ChangeButton
              look={final > 0 ? 'plain' : 'primary'}
              disabled={isBusy}
              onClick={() => start('retry', retried)}
            >
              <FastForward size={14} aria-hidden />
              Retry {countText(retried)} now
            </ChangeButton>
          ) : null}
          {source === 'job' || source === 'saga' ? null : (
            <ChangeButton disabled={isBusy} onClick={() => onAll('discard')}>
              <Trash2 size={14} aria-hidden />
              Discard {countText(count)}…
            </ChangeButton>
          )}
        </div>
      ) : null}
      <BulkStatus bulk={bulk} />
      {isGone && bulk.action === undefined ? (
        <p role="status" className="rounded-md bg-good-wash px-3 py-2 text-xs text-good">
          No longer in the list: these failures were replayed, discarded, resolved or ignored.
        </p>
      ) : null}
      <Decision
        key={`${fingerprint} ${group.decision?.at ?? ''}`}
        group={group}
        onDecided={refresh}
      />
      <ul className="divide-y divide-line overflow-hidden rounded-md border border-line">
        {items.map((each) => (
          <li key={each.id} className="flex flex-col gap-1.5 px-3 py-2.5 text-xs">
            <div className="flex flex-wrap items-center gap-2">
              <span className="mono min-w-0 truncate font-medium">{each.type}</span>
              {each.isFinal ? null : <Badge tone="warn">retrying</Badge>}
              <span className="ml-auto">
                <Time at={each.at} />
              </span>
            </div>
            <p className="mono break-words text-bad">{each.error}</p>
            <CauseDetail cause={each.cause} />
            {each.source === 'delivery' ? <Attempts id={each.id} /> : null}
            {each.source === 'bus' || each.source === 'saga' ? null : (
              <Payload source={each.source} id={each.id} />
            )}
            {each.stream === undefined ? null : (
              <p>
                <StreamLink stream={each.stream} />
              </p>
            )}
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-soft">
              <span>
                {each.attempts} {each.attempts === 1 ? 'attempt' : 'attempts'}
              </span>
              {each.correlationId === undefined ? null : (
                <TraceLink id={each.correlationId}>trace</TraceLink>
              )}
              {mayAct ? (
                <button
                  type="button"
                  disabled={isBusy}
                  {...offline}
                  onClick={() => start(each.isFinal ? 'replay' : 'retry', 1, [each.id])}
                  className="ml-auto text-accent hover:underline disabled:opacity-50"
                >
                  {each.isFinal ? 'Replay this one' : 'Retry this one now'}
                </button>
              ) : null}
            </div>
          </li>
        ))}
      </ul>
      {group.count > items.length ? (
        <p className="text-xs text-soft">
          The latest {items.length} of {countText(group.count)} are shown; the buttons above act on
          all of them.
        </p>
      ) : null}
    </div>
  );
}

function filterOf({ source, fingerprint }: Group, ids?: readonly string[]): BulkFilter {
  return { source, fingerprint, ...(ids === undefined ? {} : { ids: [...ids] }) };
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
            <ChangeButton onClick={() => decide.mutate({ state: 'resolved' })}>
              Resolve
            </ChangeButton>
            <ChangeButton onClick={() => decide.mutate({ state: 'ignored' })}>Ignore</ChangeButton>
          </>
        ) : (
          <>
            <Badge>{now}</Badge>
            <ChangeButton onClick={() => decide.mutate({ state: 'open' })}>Reopen</ChangeButton>
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
        <ChangeButton type="submit" disabled={decide.isPending || note === (decision?.note ?? '')}>
          Save note
        </ChangeButton>
      </div>
      {decide.error === null ? null : (
        <p role="alert" className="text-bad">
          {decide.error.message}
        </p>
      )}
    </form>
  );
}

/** The attempts of a delivery, read when they are opened. */
function Attempts({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="mb-1 cursor-pointer text-soft">Attempts</summary>
      <DeliveryAttempts id={id} isShown={isOpen} />
    </details>
  );
}

/** The payload of the event, message or job, read when it is opened. */
function Payload({ source, id }: { readonly source: keyof typeof payloadOf; readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  const { data, error } = useQuery({
    queryKey: ['payload', source, id],
    queryFn: ({ signal }) => payloadOf[source](id, signal),
    enabled: isOpen,
  });
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="mb-1 cursor-pointer text-soft">Payload</summary>
      {error !== null ? (
        <p className="text-bad">{error.message}</p>
      ) : data === undefined ? null : (
        <JsonView value={data.payload} label="the payload" />
      )}
    </details>
  );
}

type ReadPayload = (id: string, signal: AbortSignal) => Promise<{ readonly payload: unknown }>;

const payloadOf: Readonly<Record<'dead-letter' | 'delivery' | 'job', ReadPayload>> = {
  'dead-letter': (id, signal) => call('GET /admin/dlq/{id}', { params: { id }, signal }),
  delivery: (id, signal) => call('GET /admin/outbox/{id}', { params: { id }, signal }),
  job: async (id, signal) => (await call('GET /api/v1/jobs/{id}', { params: { id }, signal })).task,
};

/** Name and code of the error, and its stack. */
export function CauseDetail({ cause }: { readonly cause: Detail['items'][number]['cause'] }) {
  const { name, code, stack } = cause;
  const title = [name, code].filter((part) => part !== undefined).join(' · ');
  if (stack === undefined) return title === '' ? null : <p className="mono text-soft">{title}</p>;
  return (
    <details>
      <summary className="mono cursor-pointer text-soft">{title} · stack</summary>
      <pre tabIndex={0} className="mt-1 max-h-60 overflow-auto rounded-md bg-page p-2 text-[11px]">
        {stack}
      </pre>
    </details>
  );
}

// One cause of failures: replay or discard all of them or one, decide on the cause, and see stacks and attempts.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { RotateCw, Trash2 } from 'lucide-react';
import { useState, type FormEvent } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { isRunning, useBulk, type BulkFilter } from '../lib/bulk.ts';
import { countText } from '../lib/format.ts';
import { allows, useSession } from '../lib/session.ts';
import { DeliveryAttempts } from '../ui/delivery-attempts.tsx';
import { Badge, Button, StreamLink, Time, TraceLink } from '../ui/parts.tsx';
import { Modal } from '../ui/sheet.tsx';

type Detail = ResponseOf<'GET /admin/failures/{fingerprint}'>;
type Group = Detail['group'];

export function GroupDetail({ detail: { group, items, until } }: { readonly detail: Detail }) {
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
            {each.source === 'delivery' ? <Attempts id={each.id} /> : null}
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

// One action on all failures that match a filter: what it would change, then its progress and the outcome of each.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { CheckCheck } from 'lucide-react';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { call, type ResponseOf } from '../lib/api.ts';
import { bulkVerbs, isRunning, useBulk, type BulkFilter, type BulkVerb } from '../lib/bulk.ts';
import { countText } from '../lib/format.ts';
import { BulkStatus } from './bulk-status.tsx';
import { Choices } from './filters.tsx';
import { Badge, ChangeButton, Time } from './parts.tsx';
import { Modal } from './sheet.tsx';
import { Failed, Loading } from './states.tsx';

export interface BulkSearch {
  /** The action that is previewed. */
  readonly all?: BulkVerb | undefined;
  /** The id of the action that runs or has ended. */
  readonly bulk?: string | undefined;
}

type Preview = ResponseOf<'POST /admin/bulk/preview'>;

export function BulkWindow({
  search: { all, bulk: id },
  filter,
  isKnown,
  about,
  onChange,
}: {
  readonly search: BulkSearch;
  /** Undefined: no failure is shown. */
  readonly filter: BulkFilter | undefined;
  readonly isKnown: boolean;
  /** The failures, in words. */
  readonly about: string;
  readonly onChange: (search: BulkSearch) => void;
}) {
  const client = useQueryClient();
  const refresh = (): void => {
    for (const key of ['failures', 'deliveries', 'overview'])
      void client.invalidateQueries({ queryKey: [key] });
  };
  const bulk = useBulk(refresh, id);
  const started = bulk.startedId;
  useEffect(() => {
    if (started !== undefined) onChange({ all: undefined, bulk: started });
  }, [started]);
  const isOpen = all !== undefined || id !== undefined;
  return (
    <Modal
      isOpen={isOpen}
      onClose={() => onChange({ all: undefined, bulk: undefined })}
      title={`${id === undefined ? 'Change' : 'Changing'} ${about}`}
    >
      <div className="flex min-h-0 flex-col gap-4 overflow-y-auto p-4">
        {id !== undefined ? (
          <Progress id={id} bulk={bulk} />
        ) : all !== undefined && filter !== undefined ? (
          <>
            <Choices
              label="Action"
              value={all}
              onChange={(value) => onChange({ all: value, bulk: undefined })}
              choices={bulkVerbs.map(({ action, title }) => ({ value: action, title }))}
            />
            <Order key={all} action={all} filter={filter} bulk={bulk} />
          </>
        ) : isKnown ? (
          <Nothing>No failure matches the filter.</Nothing>
        ) : (
          <Loading rows={3} />
        )}
      </div>
    </Modal>
  );
}

function Order({
  action,
  filter,
  bulk,
}: {
  readonly action: BulkVerb;
  readonly filter: BulkFilter;
  readonly bulk: ReturnType<typeof useBulk>;
}) {
  const [reason, setReason] = useState('');
  const { mutate, data, error } = useMutation({
    mutationFn: () => call('POST /admin/bulk/preview', { body: { action, filter } }),
  });
  useEffect(() => mutate(), [mutate]);
  if (error !== null) return <Failed error={error} onRetry={() => mutate()} />;
  if (data === undefined) return <Loading rows={3} />;
  const { matched, until } = data;
  const { title, none } = bulkVerbs.find((each) => each.action === action) ?? bulkVerbs[0];
  if (matched === 0) {
    return <Nothing>{none}</Nothing>;
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const order = { action, filter, until, matched };
    bulk.start(action === 'discard' ? { ...order, reason: reason.trim() } : order);
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <Samples preview={data} />
      {action === 'discard' ? (
        <div className="flex flex-col gap-1.5">
          <p className="text-xs text-soft">
            Discarded events and messages are never processed. Later ones of their aggregates and
            keys continue. This cannot be undone.
          </p>
          <label htmlFor="bulk-reason" className="text-xs font-medium">
            Reason, stored with each of them
          </label>
          <input
            id="bulk-reason"
            required
            maxLength={2_000}
            value={reason}
            onChange={({ target }) => setReason(target.value)}
            className="h-9 rounded-md border border-strong bg-page px-3"
          />
        </div>
      ) : null}
      {bulk.error === null ? null : (
        <div role="alert" className="rounded-md bg-bad-wash px-3 py-2 text-xs text-bad">
          {bulk.error.message}.{' '}
          <button type="button" className="underline" onClick={() => mutate()}>
            Count again
          </button>
        </div>
      )}
      <div className="flex justify-end">
        <ChangeButton
          type="submit"
          look="primary"
          disabled={bulk.isPending || (action === 'discard' && reason.trim() === '')}
        >
          {title} {countText(matched)}
        </ChangeButton>
      </div>
    </form>
  );
}

function Nothing({ children }: { readonly children: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 py-8 text-center">
      <CheckCheck size={22} aria-hidden className="text-soft" />
      <p className="text-xs text-soft">{children}</p>
    </div>
  );
}

function Samples({
  preview: { matched, until, samples, isComplete },
}: {
  readonly preview: Preview;
}) {
  return (
    <div className="flex flex-col gap-2 text-xs">
      <p>
        <b>{countText(matched)}</b> {matched === 1 ? 'failure' : 'failures'} as of{' '}
        <Time at={until} />. <span className="text-soft">Later failures are not changed.</span>
      </p>
      {isComplete ? null : (
        <p className="text-warn">
          There are more failures of one kind than are read at once; run the action again for the
          rest.
        </p>
      )}
      <ul
        aria-label="The latest of them"
        className="divide-y divide-line rounded-md border border-line"
      >
        {samples.map(({ source, id, where, error, at }) => (
          <li key={`${source} ${id}`} className="flex flex-col gap-0.5 px-3 py-2">
            <span className="flex items-center gap-2">
              <span className="mono min-w-0 truncate font-medium">{where}</span>
              <span className="ml-auto shrink-0">
                <Time at={at} />
              </span>
            </span>
            <span className="mono line-clamp-2 break-words text-soft">{error}</span>
          </li>
        ))}
      </ul>
      {matched > samples.length ? (
        <p className="text-soft">The latest {samples.length} are shown.</p>
      ) : null}
    </div>
  );
}

const outcomeTitles = { waiting: 'waits', done: 'changed', unchanged: 'no change needed' } as const;
const outcomeTones = { waiting: 'neutral', done: 'good', unchanged: 'neutral' } as const;

/** How many outcomes are shown. */
const shownMax = 100;

function Progress({
  id,
  bulk,
}: {
  readonly id: string;
  readonly bulk: ReturnType<typeof useBulk>;
}) {
  const { action } = bulk;
  const { data } = useQuery({
    queryKey: ['bulk-items', id, action?.done, action?.unchanged, action?.state],
    queryFn: ({ signal }) => call('GET /admin/bulk/{id}/items', { params: { id }, signal }),
    enabled: action !== undefined,
    placeholderData: (before) => before,
  });
  if (bulk.readError !== null && action === undefined)
    return <Failed error={bulk.readError} gone="No bulk action has this id." />;
  if (action === undefined) return <Loading rows={3} />;
  const items = data?.items ?? [];
  return (
    <div className="flex flex-col gap-3">
      <BulkStatus bulk={bulk} />
      <p className="text-xs text-soft">
        by {action.by} <Time at={action.startedAt} />
        {action.reason === '' ? '' : `: ${action.reason}`}
      </p>
      {items.length === 0 ? null : (
        <ul aria-label="Outcomes" className="divide-y divide-line rounded-md border border-line">
          {items.slice(0, shownMax).map(({ source, id: each, outcome }) => (
            <li key={`${source} ${each}`} className="flex items-center gap-2 px-3 py-1.5 text-xs">
              <span className="mono min-w-0 truncate">{each}</span>
              <span className="ml-auto shrink-0">
                <Badge tone={outcomeTones[outcome]}>{outcomeTitles[outcome]}</Badge>
              </span>
            </li>
          ))}
        </ul>
      )}
      {action.matched > shownMax || isRunning(action) ? (
        <p className="text-xs text-soft">
          {Math.min(items.length, shownMax)} of {countText(action.matched)} outcomes are shown.
        </p>
      ) : null}
    </div>
  );
}

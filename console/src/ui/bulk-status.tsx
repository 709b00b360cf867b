// The progress of a bulk action, and how it ended.

import { isRunning, type useBulk } from '../lib/bulk.ts';
import { countText } from '../lib/format.ts';
import { useOffline } from './parts.tsx';

const verbs = {
  replay: 'Replay requested for',
  retry: 'Due now:',
  discard: 'Discarded',
} as const;

export function BulkStatus({
  bulk: { action, error, cancel },
}: {
  readonly bulk: Pick<ReturnType<typeof useBulk>, 'action' | 'error' | 'cancel'>;
}) {
  const offline = useOffline();
  if (error !== null) {
    return (
      <p role="alert" className="rounded-md bg-bad-wash px-3 py-2 text-xs text-bad">
        {error.message}
      </p>
    );
  }
  if (action === undefined) return null;
  const { done, unchanged, matched, state } = action;
  return (
    <div role="status" className="rounded-md bg-good-wash px-3 py-2 text-xs text-good">
      <p className="flex items-center gap-2">
        {verbs[action.action]} {countText(done)} of {countText(matched)}.
        {unchanged > 0 ? ` ${countText(unchanged)} needed no change.` : ''}
        {state === 'failed' || state === 'cancelled' ? ` The action was ${state}.` : ''}
        {isRunning(action) ? (
          <button
            type="button"
            onClick={cancel}
            {...offline}
            className="ml-auto underline disabled:opacity-50"
          >
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

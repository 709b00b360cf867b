// The client's errors told apart: what a caller can decide by, and what is merely away.

import { MillraceError } from '../../foundation/error.ts';

/** Kinds that another try may end otherwise; whether the work was done is not known. */
const transientKinds = new Set([
  'unavailable',
  'deadline-exceeded',
  'timeout',
  'cancelled',
  'not-leader',
]);

const tooLargeKinds = new Set([
  'maximum-append-size-exceeded',
  'append-record-size-exceeded',
  'transaction-max-size-exceeded',
]);

/** The bridge's own words where it has no name for a connection that is gone. */
const transientWords = /unavailable|connect|connection|transport|deadline|timed? ?out|closed/i;

/** `wrong-expected-version`, `stream-not-found`, …; undefined for what is not the client's. */
function kindOf(error: unknown): string | undefined {
  const type = (error as { readonly type?: unknown } | undefined)?.type;
  return typeof type === 'string' ? type : undefined;
}

export function isKind(error: unknown, ...kinds: readonly string[]): boolean {
  const kind = kindOf(error);
  return kind !== undefined && kinds.includes(kind);
}

/** The stream's last revision in a wrong-expected-version error; −1: it has none. */
export function actualRevisionOf(error: unknown): number {
  const { actualState } = error as { readonly actualState?: unknown };
  return typeof actualState === 'bigint' && actualState >= 0n ? Number(actualState) : -1;
}

/** Which stream a wrong-expected-version or a tombstone is about, where the server says it. */
export function streamOf(error: unknown): string | undefined {
  const { streamName, stream } = error as {
    readonly streamName?: unknown;
    readonly stream?: unknown;
  };
  const name = streamName ?? stream;
  return typeof name === 'string' ? name : undefined;
}

export function isTransient(error: unknown): boolean {
  if (error instanceof MillraceError) return error.code === 'STORE_UNAVAILABLE' && error.retryable;
  const kind = kindOf(error);
  if (kind !== undefined && kind !== 'unknown') return transientKinds.has(kind);
  return error instanceof Error && transientWords.test(error.message);
}

/** What callers get for everything that the adapter does not decide itself. */
export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const kind = kindOf(error);
  const reason = (error instanceof Error ? error.message : String(error)) || (kind ?? 'no reason');
  if (kind !== undefined && tooLargeKinds.has(kind)) {
    return new MillraceError(
      'APPEND_INVALID',
      `the append is too large for the server: ${reason}`,
      {
        cause: error,
        details: { reason, kind },
      },
    );
  }
  return new MillraceError('STORE_UNAVAILABLE', `the server did not do it: ${reason}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason, ...(kind === undefined ? {} : { kind }) },
  });
}

export function storeClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the event store was closed');
}

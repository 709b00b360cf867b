// Classifies errors of the client: rejections that callers handle, transient failures, and other errors.

import { MillraceError } from '../../foundation/error.ts';

/** Kinds of errors after which a retry may succeed; the server may have executed the operation nevertheless. */
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

/** Messages of the native bridge, which has no error type for a lost connection. */
const transientWords = /unavailable|connect|connection|transport|deadline|timed? ?out|closed/i;

/** Returns the kind of an error: `wrong-expected-version`, `stream-not-found`, …; undefined for other errors. */
function kindOf(error: unknown): string | undefined {
  const type = (error as { readonly type?: unknown } | undefined)?.type;
  return typeof type === 'string' ? type : undefined;
}

export function isKind(error: unknown, ...kinds: readonly string[]): boolean {
  const kind = kindOf(error);
  return kind !== undefined && kinds.includes(kind);
}

/** The last revision of the stream in a wrong-expected-version error; −1: no events. */
export function actualRevisionOf(error: unknown): number {
  const { actualState } = error as { readonly actualState?: unknown };
  return typeof actualState === 'bigint' && actualState >= 0n ? Number(actualState) : -1;
}

/** The stream of a wrong-expected-version or tombstone error, if the server reports it. */
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

/** Translates every error that the adapter does not handle. */
export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const kind = kindOf(error);
  const reason = (error instanceof Error ? error.message : String(error)) || (kind ?? 'no reason');
  if (kind !== undefined && tooLargeKinds.has(kind)) {
    return new MillraceError('APPEND_INVALID', `append too large for the server: ${reason}`, {
      cause: error,
      details: { reason, kind },
    });
  }
  return new MillraceError('STORE_UNAVAILABLE', `KurrentDB request failed: ${reason}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason, ...(kind === undefined ? {} : { kind }) },
  });
}

export function storeClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the event store was closed');
}

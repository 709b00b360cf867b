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

/**
 * Messages of errors without a type: a lost connection of the native bridge, a cluster without a node, and a server
 * that starts.
 */
const transientWords =
  /unavailable|connect|connection|transport|deadline|timed? ?out|closed|discover|not ready/i;

/** Failures that only a change of the URL or of the server ends: no retry succeeds before. */
const setUpProblems: readonly (readonly [pattern: RegExp, problem: string])[] = [
  [
    /servername to an IP address/i,
    'TLS needs a host name: replace the IP address in the URL by a name of the certificate',
  ],
  [
    /certificate|self[- ]signed|unknown ?issuer/i,
    'the certificate of the server is not trusted: name the file of its authority with tlsCAFile',
  ],
  [
    /wrong version number|corrupt message/i,
    'the server does not use TLS: add tls=false to the URL',
  ],
  [/unauthenticated/i, 'the server rejected the user or the password of the URL'],
];

/** Undefined if a retry may succeed. */
function setUpProblemOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return setUpProblems.find(([pattern]) => pattern.test(error.message))?.[1];
}

/** An append that was not answered in time; a caller may repeat it. */
export function unanswered(): Error {
  return Object.assign(new Error('the server did not answer the append in time'), {
    type: 'deadline-exceeded',
  });
}

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

export function isTransient(error: unknown): boolean {
  if (error instanceof MillraceError) return error.code === 'STORE_UNAVAILABLE' && error.retryable;
  if (setUpProblemOf(error) !== undefined) return false;
  const kind = kindOf(error);
  if (kind !== undefined && kind !== 'unknown') return transientKinds.has(kind);
  return error instanceof Error && transientWords.test(error.message);
}

/** Whether the server is reachable and starts. */
export function isStarting(error: unknown): boolean {
  return error instanceof Error && /not ready/i.test(error.message);
}

export function isAccessDenied(error: unknown): boolean {
  return error instanceof MillraceError && error.details['kind'] === 'access-denied';
}

/** Translates every error that the adapter does not handle. */
export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const problem = setUpProblemOf(error);
  if (problem !== undefined) {
    return new MillraceError('CONFIG_INVALID', `KurrentDB cannot be used: ${problem}`, {
      cause: error,
      details: { reason: problem },
    });
  }
  const kind = kindOf(error);
  const reason = (error instanceof Error ? error.message : String(error)) || (kind ?? 'no reason');
  if (kind !== undefined && tooLargeKinds.has(kind)) {
    return new MillraceError('APPEND_INVALID', `append too large for the server: ${reason}`, {
      cause: error,
      details: { reason, kind },
    });
  }
  const hint =
    kind === 'access-denied'
      ? ': check user and password in the URL, and the rights of the user'
      : /Failed to connect/.test(reason)
        ? ' (a server with TLS needs tls=true in the URL)'
        : '';
  return new MillraceError('STORE_UNAVAILABLE', `KurrentDB request failed: ${reason}${hint}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason, ...(kind === undefined ? {} : { kind }) },
  });
}

export function storeClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the event store was closed');
}

// Classifies the errors of the client: rejections that callers handle, failures that pass, and other failures.

import { MillraceError } from '../../foundation/error.ts';
import type { WriteOutcome } from '../../store/store-engine.ts';

type Rejection = Extract<WriteOutcome, { readonly kind: 'conflict' | 'deleted' }>;

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

/** An append that was not answered in time; a caller may repeat it. */
export function unanswered(): MillraceError {
  const late = new Error('the server did not answer the append in time');
  return unavailable(Object.assign(late, { type: 'deadline-exceeded' }));
}

/** The kind of an error, also of a translated one: `wrong-expected-version`, `stream-not-found`, … */
function kindOf(error: unknown): string | undefined {
  const { type } = (error ?? {}) as { readonly type?: unknown };
  const kind = error instanceof MillraceError ? error.details['kind'] : type;
  return typeof kind === 'string' ? kind : undefined;
}

export function isKind(error: unknown, ...kinds: readonly string[]): boolean {
  return kinds.includes(kindOf(error) ?? '');
}

/** Undefined: the server did not reject the append. */
export function rejectionOf(error: unknown): Rejection | undefined {
  if (isKind(error, 'stream-deleted', 'stream-tombstoned')) return { kind: 'deleted' };
  if (!isKind(error, 'wrong-expected-version')) return undefined;
  const { cause } = error as { readonly cause: { readonly actualState?: unknown } };
  const actual = typeof cause.actualState === 'bigint' ? Number(cause.actualState) : -1;
  return { kind: 'conflict', actual: Math.max(actual, -1) };
}

/** The connection translates every error of the client. */
export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const kind = kindOf(error);
  const reason = (error instanceof Error ? error.message : String(error)) || (kind ?? 'no reason');
  const isTyped = kind !== undefined && kind !== 'unknown';
  const retryable = isTyped ? transientKinds.has(kind) : transientWords.test(reason);
  // The message of another answer may quote the name of a stream.
  const mayBeSetUp = !isTyped || retryable || kind === 'access-denied';
  const problem = setUpProblems.find(([pattern]) => mayBeSetUp && pattern.test(reason))?.[1];
  if (problem !== undefined) {
    return new MillraceError('CONFIG_INVALID', `KurrentDB cannot be used: ${problem}`, {
      cause: error,
      details: { reason: problem },
    });
  }
  const details = { reason, ...(kind === undefined ? {} : { kind }) };
  if (tooLargeKinds.has(kind ?? '')) {
    return new MillraceError('APPEND_INVALID', `append too large for the server: ${reason}`, {
      cause: error,
      details,
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
    retryable,
    details,
  });
}

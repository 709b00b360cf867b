// What ioredis and the server say, in our words.

import { MillraceError } from '../../foundation/error.ts';

/** Replies of a server that starts, fails over, is full, or has lost the rest of its cluster. */
const passing =
  /^(LOADING|BUSY|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|READONLY|OOM|MISCONF|NOREPLICAS|UNBLOCKED|MOVED|ASK)\b/;

export function redisUnavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // Of a cluster, what the last node said tells more than that all of them failed.
  const said = (error as { readonly lastNodeError?: unknown } | undefined)?.lastNodeError ?? error;
  const reason = said instanceof Error ? said.message : String(said);
  return new MillraceError('STORE_UNAVAILABLE', `Redis did not do it: ${reason}`, {
    cause: error,
    // Only an answer can say that it is pointless; everything else is a matter of the connection.
    retryable: !isReply(said) || passing.test(reason),
    details: { reason },
  });
}

export function redisClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the connection to Redis was closed');
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

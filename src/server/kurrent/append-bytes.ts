// The memory of incomplete and running appends, limited for all calls of the server together.

import type { KurrentContext } from './context.ts';
import { RpcError, status } from './rpc-error.ts';

export interface AppendBytes {
  used: number;
}

type Limited = Pick<KurrentContext, 'appendBytes' | 'limits'>;

/** Counts the events of one append; disposing it releases their memory. */
export function countAppend({
  appendBytes,
  limits,
}: Limited): Disposable & { take(bytes: number): void } {
  let own = 0;
  return {
    take(bytes) {
      own += bytes;
      appendBytes.used += bytes;
      checkAppendBytes(appendBytes, limits);
    },
    [Symbol.dispose]() {
      appendBytes.used -= own;
      own = 0;
    },
  };
}

export function checkAppendBytes(
  { used }: AppendBytes,
  { appendBytesOfAllCallsMax }: Pick<Limited['limits'], 'appendBytesOfAllCallsMax'>,
): void {
  if (used > appendBytesOfAllCallsMax) throw exhausted('too many open appends on this server');
}

/** Calls stop reading before appends are rejected. */
export function isAppendBytesHigh({ appendBytes, limits }: Limited): boolean {
  return appendBytes.used > limits.appendBytesOfAllCallsMax / 2;
}

export function exhausted(message: string): RpcError {
  return new RpcError(message, { status: status.resourceExhausted });
}

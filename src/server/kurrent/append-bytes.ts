// The memory of incomplete and of running appends, limited for all calls of the server together. The limits are separate:
// incomplete appends of one client must not stop the complete ones of others.

import type { KurrentContext } from './context.ts';
import { RpcError, status } from './rpc-error.ts';

export interface AppendBytes {
  /** Of incomplete appends and batches. */
  open: number;
  running: number;
}

/** An incomplete append of at most this size is not counted: it must be possible while others fill the limit. */
const uncountedBytes = 16_384;

export interface CountedAppend extends Disposable {
  /** Counts an event of an incomplete append. */
  take(bytes: number): void;
  /** Counts a complete append, until it is disposed. */
  run(bytes?: number): void;
}

type Limited = Pick<KurrentContext, 'appendBytes' | 'limits'>;

export function countAppend({ appendBytes, limits }: Limited): CountedAppend {
  let size = 0;
  let open = 0;
  let running = 0;
  const release = (): void => {
    appendBytes.open -= open;
    appendBytes.running -= running;
    open = 0;
    running = 0;
  };
  return {
    take(bytes) {
      size += bytes;
      if (size <= uncountedBytes) return;
      appendBytes.open += size - open;
      open = size;
      checkOpenBytes(appendBytes, limits);
    },
    run(bytes = size) {
      release();
      running = bytes;
      appendBytes.running += bytes;
      if (appendBytes.running > limits.runningAppendBytesMax) {
        throw exhausted('too many running appends on this server');
      }
    },
    [Symbol.dispose]: release,
  };
}

export function checkOpenBytes(
  { open }: AppendBytes,
  { openAppendBytesMax }: Pick<Limited['limits'], 'openAppendBytesMax'>,
): void {
  if (open > openAppendBytesMax) throw exhausted('too many incomplete appends on this server');
}

/** Calls stop reading before appends are rejected. */
export function areManyRunning({ appendBytes, limits }: Limited): boolean {
  return appendBytes.running > limits.runningAppendBytesMax / 2;
}

export function exhausted(message: string): RpcError {
  return new RpcError(message, { status: status.resourceExhausted });
}

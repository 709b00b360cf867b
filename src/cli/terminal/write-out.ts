// Writing long output at the speed of the reader, so that it does not pile up in memory.

import { aborted } from '../../foundation/clock.ts';

export interface Output {
  /** Returns false when the buffer is full, until `drain`. */
  write(text: string): unknown;
  once?(event: 'drain', listener: () => void): unknown;
  readonly isTTY?: boolean | undefined;
}

export async function writeOut(output: Output, text: string, signal: AbortSignal): Promise<void> {
  if (output.write(text) !== false || output.once === undefined) return;
  if (signal.aborted) throw aborted(signal);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(aborted(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  output.once('drain', resolve);
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

// Writing much: no faster than the other side reads, so that nothing piles up in between.

import { aborted } from '../foundation/clock.ts';
import type { Output } from './command.ts';

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

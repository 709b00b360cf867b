// For drivers that cannot cancel a call: the call is not waited for after its signal fires.

import type { DeliveryOutcome } from './delivery-outcome.ts';

/** The outcome of the work, or an ambiguous retry after an abort. */
export async function untilAborted(
  work: Promise<DeliveryOutcome>,
  signal: AbortSignal,
): Promise<DeliveryOutcome> {
  const stopped = Promise.withResolvers<DeliveryOutcome>();
  const onAbort = (): void =>
    stopped.resolve({ kind: 'retry', error: 'the attempt was cancelled', ambiguous: true });
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

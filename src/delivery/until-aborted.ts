// For drivers that cannot cancel a call: the call is not waited for after its signal fires.

import { whenAborted } from '../foundation/async/when-aborted.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';

const cancelled: DeliveryOutcome = {
  kind: 'retry',
  error: 'the attempt was cancelled',
  ambiguous: true,
};

/** The outcome of the work, or an ambiguous retry after an abort. */
export async function untilAborted(
  work: Promise<DeliveryOutcome>,
  signal: AbortSignal,
): Promise<DeliveryOutcome> {
  using wait = whenAborted(signal);
  return await Promise.race([work, wait.aborted.then(() => cancelled)]);
}

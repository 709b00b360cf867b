// A process that is started while one of its servers is down waits for it, as under a supervisor.

import { systemClock } from '../../src/foundation/clock.ts';
import { MillraceError } from '../../src/foundation/error.ts';

export async function openWhenBack<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof MillraceError) || !error.retryable) throw error;
      await systemClock.sleep(50);
    }
  }
}

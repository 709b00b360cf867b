// Opens a connection, and retries while the server is down, as a supervised process would.

import { systemClock } from '../../src/foundation/clock.ts';
import { MillraceError } from '../../src/foundation/error.ts';

export async function openWithRetry<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof MillraceError) || !error.retryable) throw error;
      await systemClock.sleep(50);
    }
  }
}

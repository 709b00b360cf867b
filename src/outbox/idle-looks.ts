// Who waits until a dispatcher has nothing to do: only a look that began after they asked counts.

import { createWaiters } from '../store/waiters.ts';

export interface IdleLooks {
  /** A look at the ledger begins; its number. */
  begin(): number;
  /** It found nothing, and nothing is under way. */
  wasIdle(look: number): void;
  when(signal: AbortSignal): Promise<void>;
}

export function createIdleLooks(): IdleLooks {
  const waiters = createWaiters();
  let begun = 0;
  let idle = 0;
  return {
    begin() {
      begun += 1;
      return begun;
    },
    wasIdle(look) {
      idle = look;
      waiters.wakeAll();
    },
    async when(signal) {
      const asked = begun;
      while (idle <= asked) await waiters.wait(signal, () => idle > asked);
    },
  };
}

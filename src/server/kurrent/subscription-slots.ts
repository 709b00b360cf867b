// How many live subscriptions there may be at a time, over all clients.

import { Refusal, status } from './refusal.ts';

export interface SubscriptionSlots {
  readonly used: number;
  /** Takes a slot and returns how to give it back, or refuses. */
  acquire(): () => void;
}

export function createSubscriptionSlots(max: number): SubscriptionSlots {
  let used = 0;
  return {
    get used() {
      return used;
    },
    acquire() {
      if (used >= max) {
        throw new Refusal('the server has no room for more subscriptions', {
          status: status.resourceExhausted,
        });
      }
      used += 1;
      let held = true;
      return () => {
        if (held) used -= 1;
        held = false;
      };
    },
  };
}

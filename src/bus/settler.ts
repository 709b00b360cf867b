// Settlements that come while one call is under way go together in the next.

import type { Settlement } from './bus-engine.ts';
import type { SettleOutcome } from './bus-message.ts';

export interface Settler {
  settle(settlement: Settlement): Promise<SettleOutcome>;
}

const batchMax = 1_000;

export function createSettler(
  send: (settlements: readonly Settlement[]) => Promise<readonly SettleOutcome[]>,
): Settler {
  let waiting: {
    readonly settlement: Settlement;
    readonly answer: PromiseWithResolvers<SettleOutcome>;
  }[] = [];
  let isSending = false;

  async function flush(): Promise<void> {
    isSending = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax);
      waiting = waiting.slice(batchMax);
      try {
        const outcomes = await send(batch.map(({ settlement }) => settlement));
        for (const [at, { answer }] of batch.entries()) answer.resolve(outcomes[at] ?? 'stale');
      } catch (error) {
        for (const { answer } of batch) answer.reject(error);
      }
    }
    isSending = false;
  }

  return {
    settle(settlement) {
      const answer = Promise.withResolvers<SettleOutcome>();
      waiting.push({ settlement, answer });
      // Behind the microtasks: handlers that end together settle together.
      if (!isSending) {
        isSending = true;
        process.nextTick(() => void flush());
      }
      return answer.promise;
    },
  };
}

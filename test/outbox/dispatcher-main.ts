// A dispatcher process that sends over HTTP until it is stopped or killed, and fails at random.

import { createOutboxDispatcher } from '../../src/outbox/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { openLedger, type LedgerAddress } from './open-ledger.ts';
import { sendTo } from './receiver.ts';

export interface DispatcherInput extends LedgerAddress {
  readonly receiver: string;
  readonly seed: number;
  /** Default: that of the dispatcher. */
  readonly leaseMs?: number | undefined;
}

const input = childInput() as DispatcherInput;
const random = seededRandom(input.seed);
const ledger = await openLedger(input);
const dispatcher = createOutboxDispatcher({
  ledger,
  leaseMs: input.leaseMs,
  tickIntervalMs: 100,
  concurrency: 8,
  batchSize: 20,
  schedule: { initialMs: 10, factor: 2, capMs: 200, jitterMs: 10 },
  async deliver({ orderingKey, payload }, { idempotencyKey, signal }) {
    if (random.below(100) < 5) throw new Error('random failure before the request');
    const message = { idempotencyKey, orderingKey, at: Number(payload['at']) };
    await sendTo(input.receiver, message, signal);
    // The receiver has the message, but the confirmation is lost.
    if (random.below(100) < 5) throw new Error('random failure after the request');
  },
});
await dispatcher.start();
process.on('message', () => void stop());
tellParent('started');

async function stop(): Promise<void> {
  await dispatcher.stop();
  await ledger[Symbol.asyncDispose]();
  tellParent('stopped');
  process.channel?.unref();
}

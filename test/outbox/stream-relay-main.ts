// A stream relay in a process of its own: sends over HTTP until it is stopped or killed, and fails at random.

import { createOutboxStreamRelay, deliverEach } from '../../src/outbox/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import type { DispatcherInput } from './dispatcher-main.ts';
import { openLedger } from './open-ledger.ts';

export interface StreamRelayInput extends DispatcherInput {
  readonly integrationType: string;
}

const input = childInput() as StreamRelayInput;
const random = seededRandom(input.seed);
const ledger = await openLedger(input);
const relay = createOutboxStreamRelay({
  ledger,
  integrationTypes: [input.integrationType],
  leaseMs: input.leaseMs,
  tickIntervalMs: 100,
  batchSize: 25,
  schedule: { initialMs: 10, factor: 2, capMs: 200, jitterMs: 10 },
  deliverBatch: deliverEach(async ({ orderingKey, payload }, { idempotencyKey, signal }) => {
    if (random.below(100) < 3) throw new Error('by chance');
    const answer = await fetch(input.receiver, {
      method: 'POST',
      body: JSON.stringify({ idempotencyKey, orderingKey, at: payload['at'] }),
      signal,
    });
    await answer.text();
    tellParent('delivered');
    // The receiver has the message, and the confirmation is lost.
    if (random.below(100) < 3) throw new Error('by chance, too late');
  }),
});
await relay.start();
process.on('message', () => void stop());
tellParent('started');

async function stop(): Promise<void> {
  await relay.stop();
  await ledger[Symbol.asyncDispose]();
  tellParent('stopped');
  process.channel?.unref();
}

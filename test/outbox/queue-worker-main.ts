// A queue worker process that sends over HTTP until it is killed, and fails at random.

import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { createQueueWorker } from '../../src/outbox/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { openWithRetry } from './open-with-retry.ts';
import type { QueueInput } from './queue-dispatcher-main.ts';
import { sendTo } from './receiver.ts';

export interface QueueWorkerInput extends QueueInput {
  readonly receiver: string;
  readonly seed: number;
}

const input = childInput() as QueueWorkerInput;
const random = seededRandom(input.seed);
const db = await openWithRetry(() =>
  openPostgres(input.postgres, { connectionsMax: 4, migrate: 'off' }),
);
const redis = await openWithRetry(() => openRedis(input.redis));
const worker = createQueueWorker({
  ledger: db.outbox,
  queue: redis.queue,
  types: ['webhook:*'],
  leaseMs: input.leaseMs,
  concurrency: 8,
  schedule: { initialMs: 10, factor: 2, capMs: 200, jitterMs: 10 },
  async deliver({ orderingKey, payload }, { idempotencyKey, attempt, signal }) {
    if (random.below(100) < 5) throw new Error('random failure before the request');
    const message = { idempotencyKey, orderingKey, at: Number(payload['at']) };
    await sendTo(input.receiver, message, signal);
    // The receiver has the message, but the confirmation is lost.
    const isLost = Number(payload['at']) % 20 === 0 && attempt === 1;
    if (isLost || random.below(100) < 5) throw new Error('failure after the request');
  },
});
await worker.start();
tellParent('started');

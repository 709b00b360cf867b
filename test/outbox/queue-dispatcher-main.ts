// A process with the outbox projector and the queue dispatcher, which runs until it is killed.

import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { createQueueDispatcher, startOutboxProjector } from '../../src/outbox/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openWithRetry } from './open-with-retry.ts';

export interface QueueInput {
  readonly postgres: string;
  readonly redis: string;
  readonly leaseMs: number;
}

const input = childInput() as QueueInput;
const db = await openWithRetry(() => openPostgres(input.postgres, { connectionsMax: 8 }));
const redis = await openWithRetry(() => openRedis(input.redis));
await openWithRetry(() =>
  startOutboxProjector(
    db,
    {
      name: 'sub:rig:outbox:v1',
      retry: { initialMs: 50, factor: 2, capMs: 500, jitterMs: 10, attemptsMax: 1_000 },
      mapper: {
        map: ({ type, payload }) => {
          const { at, key } = payload as { readonly at: number; readonly key: string };
          return {
            integrationType: `webhook:partner-${at % 2}`,
            eventType: type,
            payload: { at },
            // A message whose process is killed repeatedly must not become a dead letter here.
            maxAttempts: 1_000,
            orderingKey: at % 4 === 0 ? undefined : key,
          };
        },
      },
    },
    { leaseMs: input.leaseMs },
  ),
);
const dispatcher = createQueueDispatcher({
  ledger: db.outbox,
  queue: redis.queue,
  leaseMs: input.leaseMs,
  tickIntervalMs: 100,
  batchSize: 20,
  waitingMax: 50,
});
await dispatcher.start();
tellParent('started');

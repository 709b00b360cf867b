// The first half of the rig: a process with the projector and the dispatcher, until it is killed.

import { bullmqDeliveryQueue } from '../../src/engines/bullmq/index.ts';
import { postgresEventStore, postgresOutboxLedger } from '../../src/engines/postgres/index.ts';
import { createQueueDispatcher, startOutboxProjector } from '../../src/outbox/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openWhenBack } from './open-when-back.ts';

export interface QueueInput {
  readonly postgres: string;
  readonly redis: string;
  readonly leaseMs: number;
  readonly lockMs: number;
}

const input = childInput() as QueueInput;
const store = await openWhenBack(() => postgresEventStore(input.postgres, { connectionsMax: 4 }));
const ledger = await openWhenBack(() =>
  postgresOutboxLedger(input.postgres, { connectionsMax: 4 }),
);
const queue = await openWhenBack(() => bullmqDeliveryQueue(input.redis));
await openWhenBack(() =>
  startOutboxProjector(
    store,
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
            // Whoever is killed in the middle of it, over and over, is not the message's fault here.
            maxAttempts: 1_000,
            ...(at % 4 === 0 ? {} : { orderingKey: key }),
          };
        },
      },
    },
    { ledger, sharesDatabase: true, leaseMs: input.leaseMs },
  ),
);
const dispatcher = createQueueDispatcher({
  ledger,
  queue,
  leaseMs: input.leaseMs,
  tickIntervalMs: 100,
  batchSize: 20,
  waitingMax: 50,
});
await dispatcher.start();
tellParent('started');

// A worker process of the rig: runs the saga until it is killed, over a receiver that fails at random,
// before the command takes effect or after it did.

import { createCommandHandler } from '../../src/aggregates/index.ts';
import { dispatchCommands, startSaga } from '../../src/reactors/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import type { EngineName } from '../store/rig.ts';
import { ledger, orderSaga } from './order-saga.ts';

export interface SagaWorkerInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly name: string;
  readonly seed: number;
  readonly leaseMs: number;
  /** The URL of an index that is not the store's own. */
  readonly index?: string;
}

const { engine, url, name, seed, leaseMs, ...input } = childInput() as SagaWorkerInput;
const random = seededRandom(seed);
const store =
  engine === 'sqlite'
    ? await (await import('../../src/engines/sqlite/store/event-store.ts')).sqliteEventStore(url)
    : await (
        await import('../../src/engines/postgres/store/event-store.ts')
      ).postgresEventStore(url, { connectionsMax: 8 });
const send = dispatchCommands({ ledger: createCommandHandler(store, ledger) });

/** Only for an index of another engine: the platform loads hundreds of files. */
async function indexElsewhere(at: string) {
  const { openSagaIndex } = await import('../../src/platform/index.ts');
  return openSagaIndex(at);
}
const index = input.index === undefined ? undefined : await indexElsewhere(input.index);

await startSaga(store, orderSaga, {
  ...(index === undefined ? {} : { index }),
  worker: name,
  leaseMs,
  checkpointEvery: 20,
  checkpointMs: 100,
  pollMs: 200,
  timerPollMs: 200,
  async send(request) {
    if (random.below(100) < 5) throw new Error('before, by chance');
    const result = await send(request);
    tellParent('sent');
    if (random.below(100) < 5) throw new Error('after it, by chance');
    return result;
  },
});
tellParent('started');

// A worker process that runs the saga until it is killed, with commands that fail at random before or
// after they take effect.

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
  /** The URL of a separate index. */
  readonly index?: string | undefined;
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

/** Loaded only for a separate index, because the platform loads hundreds of files. */
async function indexElsewhere(at: string) {
  const { openSagaIndex } = await import('../../src/platform/index.ts');
  return openSagaIndex(at);
}
const index = input.index === undefined ? undefined : await indexElsewhere(input.index);

await startSaga(store, orderSaga, {
  ...(index && { index }),
  worker: name,
  leaseMs,
  checkpointEvery: 20,
  checkpointMs: 100,
  pollMs: 200,
  timerPollMs: 200,
  async send(request) {
    if (random.below(100) < 5) throw new Error('random failure before the command');
    const result = await send(request);
    tellParent('sent');
    if (random.below(100) < 5) throw new Error('random failure after the command');
    return result;
  },
});
tellParent('started');

// A worker process that runs the saga until it is killed, with commands that fail at random before or
// after they take effect.

import { createCommandHandler } from '../../src/aggregates/index.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { dispatchCommands, startSaga } from '../../src/reactors/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { openEngine, type EngineName } from '../store/rig.ts';
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
const db = await openEngine(engine, url, { connectionsMax: 8 });
const send = dispatchCommands({ ledger: createCommandHandler(db, ledger) });
const { store, subscriptions } = db;
const sagas = input.index === undefined ? db.sagas : await openRole(input.index, 'sagas');

await startSaga({ store, subscriptions, sagas }, orderSaga, {
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

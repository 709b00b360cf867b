// Check the checker: storages with the mistakes that hand-made consumers make. Each must turn the
// check of the effects red that the runs with real processes rely on; the right one stays green.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEffects, type Effect } from './effects.ts';
import type { RecordedEvent } from '../../src/store/recorded-event.ts';
import { simulateProcess } from '../../src/testing/support/subscriptions/simulated-process.ts';
import type { MemoryTransaction } from '../../src/subscriptions/memory/storage.ts';
import {
  createRig,
  labelOf,
  until,
  type Rig,
} from '../../src/testing/support/subscriptions/rig.ts';
import {
  createSubscriptionRunner,
  type SubscriptionRunner,
} from '../../src/subscriptions/subscription-runner.ts';
import type {
  EffectTransaction,
  Fence,
  SubscriptionStorage,
} from '../../src/subscriptions/subscription-storage.ts';
import { subscription } from '../../src/subscriptions/subscription.ts';

type Storage = SubscriptionStorage<MemoryTransaction>;

const name = 'sub:banking:bugs:v1';
const leaseMs = 300;

/** Another way to commit, beside everything else as it should be. */
function withCommit(
  storage: Storage,
  commit: (
    effect: EffectTransaction<MemoryTransaction>,
    ...args: [...Parameters<EffectTransaction<MemoryTransaction>['commit']>, Fence]
  ) => ReturnType<EffectTransaction<MemoryTransaction>['commit']>,
): Storage {
  return {
    ...storage,
    async begin(fence) {
      const effect = await storage.begin(fence);
      return {
        ...effect,
        commit: (settlement) => commit(effect, settlement, fence),
      };
    },
  };
}

interface Scene extends Rig {
  readonly effects: Effect[];
  /** Runs a process; `hold` is a place in its handler. */
  readonly run: (worker: string, storage: Storage, hold?: Hold) => SubscriptionRunner;
  readonly checked: () => Promise<string[]>;
}

type Hold = (event: RecordedEvent) => Promise<void>;

function createScene(): Scene {
  const rig = createRig();
  const effects: Effect[] = [];
  return {
    ...rig,
    effects,
    run(worker, storage, hold = async () => undefined) {
      const each = subscription<MemoryTransaction>({
        name,
        timeoutMs: 10_000_000,
        async handler(event, { transaction, token }) {
          const { onCommit } = await transaction();
          const { eventId, stream, revision } = event;
          onCommit(() => void effects.push({ eventId, stream, revision, worker, token }));
          await hold(event);
        },
      });
      const tuning = { leaseMs, checkpointMs: 20, pollMs: 50, worker };
      const { clock, store } = rig;
      const runner = createSubscriptionRunner(store, each, { storage, clock, ...tuning });
      void runner.start();
      return runner;
    },
    async checked() {
      const problems = checkEffects(await rig.store.readAll().toArray(), effects);
      return [...new Set(problems.map((problem) => problem.split(':')[0] ?? ''))];
    },
  };
}

/** Killed when it is about to commit, and another one goes on. */
async function killedAtCommit(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, store, append } = scene;
  const shared = store.subscriptions;
  await append('a', 1);
  const dying = simulateProcess(
    {
      schedule(promise, label) {
        if (label === 'tx.commit') dying.kill();
        return promise;
      },
    },
    shared,
    () => undefined,
  );
  // The mistake is the dying one's own: it writes straight to the database.
  const storage = { ...dying.storage, checkpoints: shared.checkpoints };
  void scene.run('dying', broken(storage));
  await until(clock, async () => (await shared.leases.list(name)).length === 1);
  await clock.advance(50);
  const next = scene.run('next', shared);
  await append('a', 2);
  await until(clock, () => scene.effects.some(({ revision }) => revision === 1));
  await next.stop();
  return scene.checked();
}

test('a checkpoint before its effect loses the effect, and the checker says so', async () => {
  assert.deepEqual(await killedAtCommit((storage) => storage), []);
  const early = (storage: Storage): Storage =>
    withCommit(storage, async (effect, settlement, fence) => {
      const position = settlement.kind === 'delivered' ? settlement.positions[0] : undefined;
      if (position !== undefined) await storage.checkpoints.save(fence, position);
      return effect.commit(settlement);
    });
  assert.deepEqual(await killedAtCommit(early), ['lost']);
});

/** Stands still in its handler until another one has done the work and written its checkpoint. */
async function overslept(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, store, append, effects } = scene;
  const shared = store.subscriptions;
  await append('a', 1);
  const waking = Promise.withResolvers<void>();
  // Its clock stands still as well: it does not notice that its lease is over.
  const asleep = simulateProcess({ schedule: (promise) => promise }, shared, () => undefined);
  const late = scene.run('late', broken(asleep.storage), async () => {
    asleep.freeze();
    await waking.promise;
  });
  await until(clock, async () => (await shared.leases.list(name)).length === 1);
  const next = scene.run('next', shared);
  await until(clock, () => effects.length === 1);
  await append('b', 1);
  await until(clock, () => effects.length === 2);
  // The marks are gone by then: they would hide a missing fence.
  await next.stop();
  asleep.thaw();
  waking.resolve();
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  void late.stop();
  return scene.checked();
}

test('an owner without a fence repeats what its successor did, and the checker says so', async () => {
  assert.deepEqual(await overslept((storage) => storage), []);
  let newest = 0;
  const unfenced = (storage: Storage): Storage => ({
    ...withCommit(storage, async (_effect, settlement, fence) => {
      // As if nobody compared tokens: whoever comes has the newest.
      const lease = await storage.leases.acquire(fence, 'nobody', 1);
      newest = lease.kind === 'acquired' ? lease.token : newest;
      const open = await storage.begin({ ...fence, token: newest });
      for (const apply of pending) open.transaction.onCommit(apply);
      return open.commit(settlement);
    }),
  });
  const pending: (() => void)[] = [];
  const collecting = (storage: Storage): Storage => {
    const inner = unfenced(storage);
    return {
      ...inner,
      async begin(fence) {
        const effect = await inner.begin(fence);
        const onCommit = (apply: () => void): void => void pending.push(apply);
        return { ...effect, transaction: { onCommit } };
      },
    };
  };
  const problems = await overslept(collecting);
  assert.ok(problems.includes('repeated'));
  assert.ok(problems.includes('stale owner'));
});

/** Two aggregates: the first is held in its handler, the second is done, then the process dies. */
async function killedBehindOthers(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, store, append, effects } = scene;
  const shared = store.subscriptions;
  await append('a', 1);
  await append('b', 1);
  const dying = simulateProcess({ schedule: (promise) => promise }, shared, () => undefined);
  void scene.run('dying', broken(dying.storage), async (event) => {
    if (labelOf(event) === 'a1') await new Promise(() => undefined);
  });
  await until(clock, () => effects.length === 1);
  dying.kill();
  const next = scene.run('next', broken(shared));
  await append('c', 1);
  await until(clock, () => new Set(effects.map(({ eventId }) => eventId)).size === 3);
  await next.stop();
  return scene.checked();
}

test('without marks an effect above the checkpoint is repeated, and the checker says so', async () => {
  assert.deepEqual(await killedBehindOthers((storage) => storage), []);
  const forgetful = (storage: Storage): Storage =>
    withCommit(storage, (effect, settlement) =>
      effect.commit(
        settlement.kind === 'delivered' ? { ...settlement, positions: [] } : settlement,
      ),
    );
  assert.ok((await killedBehindOthers(forgetful)).includes('repeated'));
});

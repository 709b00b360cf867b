// Tests the check that the runs with real processes rely on: typical mistakes of hand-written consumers
// must be reported, and the correct storage must not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEffects, type Effect } from './effects.ts';
import type { RecordedEvent } from '../../src/store/recorded-event.ts';
import { simulateProcess } from '../../src/testing/support/subscriptions/simulated-process.ts';
import type { MemoryTransaction } from '../../src/testing/support/subscriptions/memory/storage.ts';
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

/** Returns the storage with another implementation of commit. */
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
  /** Starts a process; its handler waits for `hold`. */
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
      const definition = subscription<MemoryTransaction>({
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
      const { clock } = rig;
      const roles = { store: rig.db.store, subscriptions: storage };
      const runner = createSubscriptionRunner(roles, definition, { clock, ...tuning });
      void runner.start();
      return runner;
    },
    async checked() {
      const problems = checkEffects(await rig.db.store.readAll().toArray(), effects);
      return [...new Set(problems.map((problem) => problem.split(':')[0] ?? ''))];
    },
  };
}

/** Kills a process at its commit; another process continues. */
async function killedAtCommit(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, db, append } = scene;
  const shared = db.subscriptions;
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
  // The mistake: the killed process writes its checkpoint directly to the database.
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

test('a checkpoint that is saved before its effect loses the effect, and the checker reports it', async () => {
  assert.deepEqual(await killedAtCommit((storage) => storage), []);
  const early = (storage: Storage): Storage =>
    withCommit(storage, async (effect, settlement, fence) => {
      const position = settlement.kind === 'delivered' ? settlement.positions[0] : undefined;
      if (position !== undefined) await storage.checkpoints.save(fence, position);
      return effect.commit(settlement);
    });
  assert.deepEqual(await killedAtCommit(early), ['lost']);
});

/** A process pauses in its handler until another one has done the work and saved its checkpoint. */
async function pausedInHandler(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, db, append, effects } = scene;
  const shared = db.subscriptions;
  await append('a', 1);
  const waking = Promise.withResolvers<void>();
  // The clock of the process is paused, too, so it does not notice that its lease has expired.
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
  // Stopping removes the marks, which would hide a missing fence.
  await next.stop();
  asleep.thaw();
  waking.resolve();
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  void late.stop();
  return scene.checked();
}

test('an owner without a fence repeats the work of its successor, and the checker reports it', async () => {
  assert.deepEqual(await pausedInHandler((storage) => storage), []);
  let newest = 0;
  const unfenced = (storage: Storage): Storage => ({
    ...withCommit(storage, async (_effect, settlement, fence) => {
      // Simulates a storage that compares no fence tokens: every commit uses the newest one.
      const lease = await storage.leases.acquire(fence, 'unfenced', 1);
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
  const problems = await pausedInHandler(collecting);
  assert.ok(problems.includes('repeated'));
  assert.ok(problems.includes('stale owner'));
});

/** The first aggregate is held in its handler, the second is done, then the process is killed. */
async function killedWithGap(broken: (storage: Storage) => Storage): Promise<string[]> {
  const scene = createScene();
  const { clock, db, append, effects } = scene;
  const shared = db.subscriptions;
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

test('without marks, an effect above the checkpoint is repeated, and the checker reports it', async () => {
  assert.deepEqual(await killedWithGap((storage) => storage), []);
  const forgetful = (storage: Storage): Storage =>
    withCommit(storage, (effect, settlement) =>
      effect.commit(
        settlement.kind === 'delivered' ? { ...settlement, positions: [] } : settlement,
      ),
    );
  assert.ok((await killedWithGap(forgetful)).includes('repeated'));
});

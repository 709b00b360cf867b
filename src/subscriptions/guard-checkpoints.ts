// Protects checkpoints that their engine may lose. The generation of each checkpoint is recorded in the event store and
// marked next to the checkpoint. If the two differ, the subscription stops with `CHECKPOINT_LOST` until it is reset:
// from the start, it would handle the whole history again.

import { randomUUID } from 'node:crypto';
import type { EventStore } from '../store/event-store.ts';
import { generationsOf } from './generations.ts';
import {
  checkpointLost,
  type CheckpointStore,
  type SubscriptionState,
  type SubscriptionStorage,
} from './subscription-storage.ts';

const guarded = new WeakMap<object, CheckpointStore>();

/** The storage itself, unless its checkpoints have marks. */
export function guardCheckpoints<Transaction>(
  storage: SubscriptionStorage<Transaction>,
  store: EventStore,
): SubscriptionStorage<Transaction> {
  const { checkpoints: inner } = storage;
  if (inner.marks === undefined) return storage;
  const checkpoints = guarded.get(storage) ?? guardedBy(inner, inner.marks, store);
  guarded.set(storage, checkpoints);
  return { ...storage, checkpoints };
}

function guardedBy(
  inner: CheckpointStore,
  marks: NonNullable<CheckpointStore['marks']>,
  store: EventStore,
): CheckpointStore {
  const generations = generationsOf(store);

  async function isLost(subscription: string): Promise<boolean> {
    const mark = await marks.read(subscription);
    const known = generations.known(subscription);
    if (known !== undefined && known.mark === mark) return false;
    const recorded = (await generations.refresh()).get(subscription);
    return recorded !== undefined && recorded.mark !== mark;
  }

  /** Also of a subscription whose checkpoint is lost, so that an operator finds it. */
  async function get(subscription: string): Promise<SubscriptionState | undefined> {
    const state = await inner.get(subscription);
    if (!(await isLost(subscription))) return state;
    return lostState(subscription, state);
  }

  function lostState(subscription: string, state: SubscriptionState | undefined) {
    const shards = state?.shards ?? generations.known(subscription)?.shards ?? 1;
    const positions = Array.from({ length: shards }, () => undefined);
    const { paused = false, filter } = state ?? {};
    return { subscription, shards, paused, filter, positions, lost: true };
  }

  return {
    ...inner,
    async open(subscription, shards, filter) {
      const state = await inner.open(subscription, shards, filter);
      const recorded = (await generations.refresh()).get(subscription);
      if (recorded === undefined) {
        // Recorded second: after a crash between the two writes, the next start records the mark that it finds.
        const mark = await marks.create(subscription, randomUUID());
        await generations.replace(subscription, undefined, { mark, shards: state.shards });
      }
      return state;
    },
    async load(key) {
      const progress = await inner.load(key);
      // Read after the progress: a loss in between has removed the mark.
      if (await isLost(key.subscription)) throw checkpointLost(key.subscription);
      return progress;
    },
    async reset(subscription, to, reason) {
      for (;;) {
        if (!(await isLost(subscription))) return inner.reset(subscription, to, reason);
        const { mark: before, shards = 1 } = generations.known(subscription) ?? {};
        const mark = randomUUID();
        // Another process resets the subscription at the same time: its generation is the current one.
        if (!(await generations.replace(subscription, before, { mark, shards }))) continue;
        if ((await inner.get(subscription)) === undefined) await inner.open(subscription, shards);
        const isReset = await inner.reset(subscription, to, reason);
        // Last: after a crash before this step, the checkpoint is still lost.
        await marks.replace(subscription, mark);
        return isReset;
      }
    },
    get,
    async list() {
      const states = new Map((await inner.list()).map((each) => [each.subscription, each]));
      const names = new Set([...states.keys(), ...subscriptionsIn(await generations.refresh())]);
      const found = await Promise.all(
        [...names].toSorted().map(async (name) => {
          const state = states.get(name);
          return (await isLost(name)) ? lostState(name, state) : state;
        }),
      );
      return found.filter((each) => each !== undefined);
    },
    isLost,
  };
}

function subscriptionsIn(records: ReadonlyMap<string, unknown>): readonly string[] {
  return [...records.keys()].filter((key) => key.startsWith('sub:'));
}

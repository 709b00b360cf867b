// Workers that are killed and stopped at random while events come in, and what must be true afterwards.

import assert from 'node:assert/strict';
import { systemClock } from '../../src/foundation/clock.ts';
import type { EventStore } from '../../src/store/index.ts';
import type { SubscriptionHost } from '../../src/subscriptions/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { newEvent, streamName, until, type EngineName } from '../store/rig.ts';
import { checkEffects, type Effect } from './effects.ts';
import type { WorkerInput, WorkerMessage } from './worker-main.ts';

export interface WorkerPlan {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
  readonly workers: number;
  readonly shards: number;
  readonly events: number;
  readonly aggregates: number;
  readonly leaseMs: number;
  /** A URL; by default, the store keeps the leases. */
  readonly leases?: string;
  /** What else goes wrong from time to time. */
  readonly alsoFault?: () => Promise<void>;
  /** Faults go on at least so long, and until everything was appended. */
  readonly faultsMs: number;
  readonly faultEveryMs: number;
}

/** However slow the machine is. */
const faultsMin = 3;

export const subscriptionName = 'sub:rig:effects:v1';

export interface Rigged {
  readonly store: EventStore & SubscriptionHost;
  readonly effects: () => Promise<readonly Effect[]>;
}

export interface OpenedRig extends Rigged, AsyncDisposable {
  readonly url: string;
}

export function startWorker(
  plan: WorkerPlan,
  name: string,
  seed: number,
  more: Partial<WorkerInput> = {},
): Child {
  const { engine, url, shards, leaseMs } = plan;
  return startChild(new URL('./worker-main.ts', import.meta.url), {
    input: {
      engine,
      url,
      name,
      seed,
      shards,
      leaseMs,
      leases: plan.leases,
      subscription: subscriptionName,
      failuresPerMille: 20,
      ...more,
    } satisfies WorkerInput,
  });
}

export async function killWorkers(plan: WorkerPlan, rigged: Rigged): Promise<void> {
  const random = seededRandom(plan.seed);
  const children: Child[] = [];
  let generation = 0;
  const start = (): Child => {
    generation += 1;
    return startWorker(plan, `w${generation}`, plan.seed + generation);
  };
  let faults = 0;
  try {
    for (let count = 0; count < plan.workers; count += 1) children.push(start());
    await Promise.race(children.map((child) => child.message(says('owns'))));
    let isAppended = false;
    const appending = appendAll(plan, rigged.store).then(() => (isAppended = true));
    const endMs = performance.now() + plan.faultsMs;
    while (performance.now() < endMs || !isAppended || faults < faultsMin) {
      await systemClock.sleep(plan.faultEveryMs * (0.5 + random.next()));
      const slot = random.below(children.length);
      faults += 1;
      if (random.below(3) === 0) await plan.alsoFault?.();
      children[slot] = await fault(children[slot] as Child, { plan, random, start });
    }
    await appending;
    await replayPoison(plan, rigged);
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

async function fault(
  child: Child,
  context: {
    readonly plan: WorkerPlan;
    readonly random: SeededRandom;
    readonly start: () => Child;
  },
): Promise<Child> {
  const { plan, random, start } = context;
  const kind = random.below(4);
  if (kind === 0) {
    // Others take over meanwhile; then it wakes up and believes to be the owner.
    process.kill(child.pid, 'SIGSTOP');
    await systemClock.sleep(plan.leaseMs * 1.3);
    process.kill(child.pid, 'SIGCONT');
    return child;
  }
  if (kind === 1) {
    await child.message(says('started'));
    child.send('stop');
    await child.message(says('stopped'));
  }
  await child.kill();
  return start();
}

async function appendAll(plan: WorkerPlan, store: EventStore): Promise<void> {
  const random = seededRandom(plan.seed + 1_000_000);
  for (let at = 0; at < plan.events;) {
    const appends = Array.from({ length: 8 }, () => {
      const count = Math.min(1 + random.below(4), plan.events - at);
      const events = Array.from({ length: count }, (_, each) =>
        newEvent(`e${plan.seed}-${at + each}`, {
          // A few of them fail for good, the first time that somebody looks.
          payload: { poison: (at + each) % 701 === 700 },
        }),
      );
      at += count;
      return { stream: streamName(random.below(plan.aggregates)), events };
    }).filter(({ events }) => events.length > 0);
    await Promise.all(appends.map(({ stream, events }) => store.append(stream, events)));
    await systemClock.sleep((plan.faultsMs * 0.7 * 16) / plan.events);
  }
}

/** Poisonous events are parked with all behind them; giving them up lets the rest go on. */
async function replayPoison(plan: WorkerPlan, { store, effects }: Rigged): Promise<void> {
  const { deadLetters, waiting } = store.subscriptions;
  const stored = await store.readAll().toArray();
  const poisonous = stored.filter(({ payload }) => (payload as { poison: boolean }).poison).length;
  assert.equal(stored.length, plan.events);
  let discarded = 0;
  await until(
    'everything is done',
    async () => {
      const request = { by: 'rig', reason: 'poison', atMs: Date.now() };
      discarded += await deadLetters.discard({}, request);
      const applied = new Set((await effects()).map(({ eventId }) => eventId));
      return (
        applied.size + discarded >= plan.events && (await waiting.count(subscriptionName)) === 0
      );
    },
    240_000,
  );
  assert.equal(discarded, poisonous);
}

export async function checkRun(plan: WorkerPlan, { store, effects }: Rigged): Promise<void> {
  const stored = await store.readAll().toArray();
  const expected = stored.filter(({ payload }) => !(payload as { poison: boolean }).poison);
  assert.deepEqual(checkEffects(expected, await effects()).slice(0, 10), [], `seed ${plan.seed}`);
}

export function says(kind: WorkerMessage['kind']) {
  return (message: unknown): message is WorkerMessage => (message as WorkerMessage).kind === kind;
}

// Kills, freezes and stops workers at random while events are appended, and checks the effects afterwards.

import assert from 'node:assert/strict';
import { systemClock } from '../../src/foundation/clock.ts';
import type { EventStore } from '../../src/store/index.ts';
import type { SubscriptionRoles } from '../../src/subscriptions/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { freezeProcess } from '../store/freeze-process.ts';
import { messageOfKind, newEvent, streamName, until, type EngineName } from '../store/rig.ts';
import { checkEffects, type Effect } from './effects.ts';
import type { WorkerInput, WorkerMessage } from './worker-main.ts';

export interface WorkerPlan {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
  readonly workers: number;
  readonly shards: number;
  /** The minimum; events are appended until the last fault. */
  readonly events: number;
  readonly aggregates: number;
  /** The pause between two batches of events. */
  readonly appendEveryMs: number;
  readonly leaseMs: number;
  /** The URL of a separate lease store; by default the store keeps the leases. */
  readonly leases?: string | undefined;
  /** The URL of a Redis with the subscriptions; by default the store has them. */
  readonly subscriptions?: string | undefined;
  /** An additional fault, at the first fault and at random later. */
  readonly alsoFault?: (() => Promise<void>) | undefined;
  /** Each kind of fault happens once; faults continue for at least this time. */
  readonly faultsMs: number;
  readonly faultEveryMs: number;
}

const faultKinds = ['killed', 'frozen', 'stopped'] as const;
type FaultKind = (typeof faultKinds)[number];

/** One event in this many fails permanently at its first delivery. */
const poisonEvery = 97;

export const subscriptionName = 'sub:rig:effects:v1';

export interface Rigged<Transaction = unknown> extends SubscriptionRoles<Transaction> {
  readonly effects: () => Promise<readonly Effect[]>;
}

export interface OpenedRig<Transaction = unknown> extends Rigged<Transaction>, AsyncDisposable {
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
      subscriptions: plan.subscriptions,
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
  const faulting = new AbortController();
  try {
    for (let count = 0; count < plan.workers; count += 1) children.push(start());
    await Promise.race(children.map((child) => child.message(says('owns'))));
    const appending = appendAll(plan, rigged.store, faulting.signal);
    const endMs = performance.now() + plan.faultsMs;
    for (let faults = 0; faults < faultKinds.length || performance.now() < endMs; faults += 1) {
      await systemClock.sleep(plan.faultEveryMs * random.next());
      const slot = random.below(children.length);
      if (faults === 0 || random.below(3) === 0) await plan.alsoFault?.();
      const kind = faultKinds[faults] ?? random.pick(faultKinds);
      children[slot] = await fault(children[slot] as Child, { plan, kind, start });
    }
    faulting.abort();
    await discardPoison(await appending, rigged);
  } finally {
    faulting.abort();
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** Waits until the worker has handled an event, so that the fault could lose work. */
async function fault(
  child: Child,
  context: {
    readonly plan: WorkerPlan;
    readonly kind: FaultKind;
    readonly start: () => Child;
  },
): Promise<Child> {
  const { plan, kind, start } = context;
  await child.message(says('worked'));
  if (kind === 'frozen') {
    // Other workers take over, and the frozen one still believes that it is the owner.
    await freezeProcess(child.pid, plan.leaseMs * 1.3, plan.url);
    return child;
  }
  if (kind === 'stopped') {
    child.send('stop');
    await child.message(says('stopped'));
  }
  await child.kill();
  return start();
}

/** Appends until the signal fires and `plan.events` is reached; resolves to the number of events. */
async function appendAll(
  plan: WorkerPlan,
  store: EventStore,
  signal: AbortSignal,
): Promise<number> {
  const random = seededRandom(plan.seed + 1_000_000);
  let at = 0;
  while (at < plan.events || !signal.aborted) {
    const appends = Array.from({ length: 8 }, () => {
      const count = 1 + random.below(4);
      const events = Array.from({ length: count }, (_, each) =>
        newEvent(`e${plan.seed}-${at + each}`, {
          payload: { poison: (at + each) % poisonEvery === poisonEvery - 1 },
        }),
      );
      at += count;
      return { stream: streamName(random.below(plan.aggregates)), events };
    });
    await Promise.all(appends.map(({ stream, events }) => store.append(stream, events)));
    await systemClock.sleep(plan.appendEveryMs);
  }
  return at;
}

/** A poisonous event parks its aggregate; discarding its dead letter releases the aggregate. */
async function discardPoison(events: number, rigged: Rigged): Promise<void> {
  const { store, subscriptions, effects } = rigged;
  const { deadLetters, waiting } = subscriptions;
  const stored = await store.readAll().toArray();
  const poisonous = stored.filter(({ payload }) => (payload as { poison: boolean }).poison).length;
  assert.equal(stored.length, events);
  let discarded = 0;
  await until(
    'every event is applied or discarded',
    async () => {
      const request = { by: 'rig', reason: 'poison', atMs: Date.now() };
      discarded += await deadLetters.discard({}, request);
      const applied = new Set((await effects()).map(({ eventId }) => eventId));
      return applied.size + discarded >= events && (await waiting.count(subscriptionName)) === 0;
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

export const says = messageOfKind<WorkerMessage>();

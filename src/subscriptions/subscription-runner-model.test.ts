import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { soakMinutes } from '../testing/property-runs.ts';
import { seededRandom } from '../testing/seeded-random.ts';
import { createRig, labelOf, streamOf } from '../testing/support/subscriptions/rig.ts';
import {
  simulateProcess,
  type SimulatedProcess,
} from '../testing/support/subscriptions/simulated-process.ts';
import { RetryAfter, Snooze, Terminal } from '../foundation/handler-outcome.ts';
import {
  memorySubscriptionStorage,
  type MemoryTransaction,
} from '../testing/support/subscriptions/memory/storage.ts';
import { createSubscriptionRunner } from './subscription-runner.ts';
import type { LeaseStore } from './subscription-storage.ts';
import { subscription } from './subscription.ts';

const name = 'sub:banking:model:v1';
const leaseMs = 300;
const streams = ['a', 'b', 'c', 'd', 'e'];

type Step =
  | { readonly kind: 'append'; readonly stream: string; readonly count: number }
  | { readonly kind: 'kill' | 'freeze' | 'thaw' | 'start'; readonly process: number }
  | { readonly kind: 'go'; readonly tasks: number }
  | { readonly kind: 'time'; readonly ms: number }
  /** Frozen until another process has taken over and made progress. */
  | { readonly kind: 'oversleep'; readonly process: number }
  /** The separate lease server loses all leases and tokens. */
  | { readonly kind: 'amnesia' }
  | { readonly kind: 'replay' };

const process = fc.integer({ min: 0, max: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('append'),
      stream: fc.constantFrom(...streams),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('go'), tasks: fc.integer({ min: 1, max: 30 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('time'), ms: fc.constantFrom(1, 20, 120, 400) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('kill', 'freeze', 'thaw', 'start'), process }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('oversleep'), process }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'amnesia' }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'replay' }) },
);

const plan = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 60 }),
  seed: fc.nat(),
  onDeadLetter: fc.constantFrom('continue' as const, 'park' as const),
  lanes: fc.constantFrom(1, 3),
  shards: fc.constantFrom(1, 2),
  inFlightMax: fc.constantFrom(4, 50),
  batchSize: fc.constantFrom(undefined, 3),
  failuresPercent: fc.constantFrom(0, 10, 40),
  leases: fc.constantFrom('own' as const, 'elsewhere' as const),
});

type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

async function simulate(scheduler: fc.Scheduler, each: Plan): Promise<void> {
  const { clock, db, append } = createRig();
  const shared = db.subscriptions;
  const random = seededRandom(each.seed);
  const effects: string[] = [];
  const counts = new Map<string, number>();
  let isHealed = false;
  let elsewhere = memorySubscriptionStorage({ clock }).leases;
  const leaseServer: LeaseStore = {
    acquire: (...args) => elsewhere.acquire(...args),
    renew: (...args) => elsewhere.renew(...args),
    release: (...args) => elsewhere.release(...args),
    list: (...args) => elsewhere.list(...args),
    announce: (...args) => elsewhere.announce(...args),
    leave: (...args) => elsewhere.leave(...args),
    workers: (...args) => elsewhere.workers(...args),
  };
  const all = each.leases === 'own' ? shared : { ...shared, leases: leaseServer };
  const processes: (SimulatedProcess | undefined)[] = [];
  const stops: (() => void)[] = [];

  const outcome = (label: string): void => {
    if (isHealed || random.below(100) >= each.failuresPercent) return;
    const kind = random.below(8);
    if (kind === 0) throw new Terminal(label);
    if (kind === 1) throw new Snooze(30);
    if (kind === 2) throw new RetryAfter(15);
    throw new Error(label);
  };

  /**
   * The checkpoint passes only events that are processed, waiting or dead-lettered. All queries start at
   * the same time, before an event can move between these sets.
   */
  const checkPassed = async (position: string): Promise<void> => {
    const applied = new Set(effects);
    const listing = shared.deadLetters.list({}, { limit: 1_000 });
    const rows = streams.map((stream) =>
      shared.waiting.next({ subscription: name, shard: 0 }, streamOf(stream), 1_000),
    );
    const storedEvents = [...(await listing), ...(await Promise.all(rows)).flat()];
    const known = new Set(storedEvents.map(({ eventId }) => eventId));
    for (const event of await db.store.readAll().toArray()) {
      if (event.position > position) continue;
      const isKnown = applied.has(labelOf(event)) || known.has(event.eventId);
      assert.ok(isKnown, `the checkpoint ${position} passed ${labelOf(event)}`);
    }
  };
  /** An effect and its checkpoint commit together, so only an earlier unprocessed event may hold the checkpoint back. */
  const checkReached = async (
    position: string,
    last: string,
    applied: readonly string[],
  ): Promise<void> => {
    const events = (await db.store.readAll().toArray()).filter((event) => event.position <= last);
    if (events.some((event) => !applied.includes(labelOf(event)))) return;
    assert.ok(position >= last, `the effect at ${last} left the checkpoint at ${position}`);
  };
  const checks: Promise<void>[] = [];
  const failures: unknown[] = [];

  function start(slot: number): void {
    if (processes[slot] !== undefined) return;
    const simulated = simulateProcess(scheduler, all, (position, committed = []) => {
      // With several shards, a checkpoint passes the events of other shards; the final checks cover that.
      if (each.shards > 1) return;
      checks.push(checkPassed(position).catch((error: unknown) => void failures.push(error)));
      // With one lane there is one commit at a time, so only an earlier event can hold the checkpoint back.
      if (each.lanes > 1) return;
      const last = committed.toSorted().at(-1) ?? '';
      const applied = [...effects];
      checks.push(
        checkReached(position, last, applied).catch((error: unknown) => void failures.push(error)),
      );
    });
    processes[slot] = simulated;
    const common = {
      name,
      shards: each.shards,
      lanes: each.lanes,
      inFlightMax: each.inFlightMax,
      onDeadLetter: each.onDeadLetter,
      retry: { initialMs: 10, factor: 2, capMs: 50, jitterMs: 0, attemptsMax: 3 },
      timeoutMs: 100_000,
    };
    const apply = async (
      labels: readonly string[],
      transaction: () => Promise<MemoryTransaction>,
    ): Promise<void> => {
      const { onCommit } = await transaction();
      for (const label of labels) onCommit(() => void effects.push(label));
      await simulated.pause(`handler ${labels.join(' ')}`);
      for (const label of labels) outcome(label);
    };
    const definition = subscription<MemoryTransaction>(
      each.batchSize === undefined
        ? {
            ...common,
            handler: (event, context) => apply([labelOf(event)], () => context.transaction()),
          }
        : {
            ...common,
            batchSize: each.batchSize,
            batchHandler: (events, context) =>
              apply(events.map(labelOf), () => context.transaction()),
          },
    );
    const roles = {
      ...db,
      subscriptions: simulated.storage,
      leases: each.leases === 'own' ? undefined : simulated.storage.leases,
    };
    const runner = createSubscriptionRunner(roles, definition, {
      clock,
      leaseMs,
      checkpointEvery: 3,
      checkpointMs: 20,
      pollMs: 50,
      windowMax: 20,
      pageSize: 4,
      drainMs: 1_000,
    });
    void runner.start();
    stops.push(() => void runner.stop());
  }

  async function go(tasks: number): Promise<void> {
    for (let task = 0; task < tasks; task += 1) {
      // The next task is often scheduled only in a later turn of the event loop.
      for (let turn = 0; turn < 3 && scheduler.count() === 0; turn += 1) {
        await new Promise(setImmediate);
      }
      if (scheduler.count() === 0) return;
      await scheduler.waitOne();
    }
  }

  /** Advances the clock and lets the due timers run. */
  async function pass(ms: number): Promise<void> {
    await clock.advance(ms);
    await new Promise(setImmediate);
  }

  start(0);
  start(1);
  for (const given of each.steps) {
    if (given.kind === 'append') {
      const from = counts.get(given.stream) ?? 0;
      counts.set(given.stream, from + given.count);
      await append(
        given.stream,
        ...Array.from({ length: given.count }, (_, index) => from + index),
      );
    } else if (given.kind === 'go') {
      await go(given.tasks);
    } else if (given.kind === 'time') {
      await pass(given.ms);
    } else if (given.kind === 'replay') {
      await shared.deadLetters.replay({}, { by: 'model', atMs: clock.now() });
    } else if (given.kind === 'amnesia') {
      elsewhere = memorySubscriptionStorage({ clock }).leases;
    } else if (given.kind === 'start') {
      start(given.process);
    } else if (given.kind === 'oversleep') {
      processes[given.process]?.freeze();
      for (const ms of [leaseMs / 2, leaseMs, 50, 50]) {
        await pass(ms);
        await go(60);
      }
      processes[given.process]?.thaw();
    } else {
      processes[given.process]?.[given.kind]();
      if (given.kind === 'kill') processes[given.process] = undefined;
    }
  }

  // Faults end: frozen processes wake up, and all events must be processed.
  isHealed = true;
  for (const simulated of processes) simulated?.thaw();
  start(0);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  for (let round = 0; effects.length < total || round < 20; round += 1) {
    assert.ok(
      round < 600,
      `${effects.length} of ${total} events were processed: ${effects.join(' ')}`,
    );
    await shared.deadLetters.replay({}, { by: 'model', atMs: clock.now() });
    await go(200);
    await pass(25);
  }
  await Promise.all(checks);
  assert.deepEqual(failures, []);
  for (const simulated of processes) simulated?.kill();
  for (const stop of stops) stop();

  assert.equal(new Set(effects).size, effects.length, `duplicates: ${effects.join(' ')}`);
  assert.equal(effects.length, total);
  const letters = await shared.deadLetters.list({}, { limit: 1_000 });
  const excepted = new Set(
    each.onDeadLetter === 'park'
      ? []
      : letters.map(({ stream, payload }) => labelOf({ stream, payload } as never)),
  );
  for (const stream of streams) {
    const order = effects.filter((label) => label.startsWith(stream) && !excepted.has(label));
    const sorted = order.toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
    assert.deepEqual(order, sorted, `stream ${stream}: ${effects.join(' ')}`);
  }
  assert.ok(
    letters.every(({ status }) => status !== 'pending'),
    'a dead letter is still pending',
  );
}

const runs = soakMinutes > 0 ? 5_000 : 50;

test(`in ${runs} simulated runs with faults, every effect happens once and in order, and no checkpoint passes an unprocessed event`, async () => {
  await fc.assert(fc.asyncProperty(fc.scheduler(), plan, simulate), {
    numRuns: runs,
    ...(globalThis.process.env['MILLRACE_SEED'] === undefined
      ? {}
      : { seed: Number(globalThis.process.env['MILLRACE_SEED']) }),
  });
});

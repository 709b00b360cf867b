import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openMemory } from '../engines/memory/index.ts';
import { CommandRejected } from '../aggregates/command-rejected.ts';
import { startPosition } from '../store/position.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { soakMinutes } from '../testing/property-runs.ts';
import { seededRandom } from '../testing/seeded-random.ts';
import {
  orderSaga,
  paid,
  placed,
  quickRetry,
  withdrawn,
} from '../testing/support/reactors/example-order.ts';
import { throughHops } from '../testing/support/reactors/hops.ts';
import type { SendCommand } from './reaction.ts';
import { sagaAdmin } from './saga-admin.ts';
import { append } from '../testing/support/reactors/saga-rig.ts';
import { createSagaRunner } from './saga-runner.ts';

const orders = ['o1', 'o2', 'o3', 'o4'];
const events = { placed, paid, withdrawn };
const leaseMs = 300;

type Step =
  | { readonly kind: 'append'; readonly event: keyof typeof events; readonly order: string }
  | { readonly kind: 'kill' | 'freeze' | 'thaw' | 'start'; readonly process: number }
  | { readonly kind: 'go'; readonly tasks: number }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'resume' }
  | { readonly kind: 'reset' };

const process = fc.integer({ min: 0, max: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      event: fc.constantFrom('placed', 'placed', 'paid', 'paid', 'withdrawn'),
      order: fc.constantFrom(...orders),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('go' as const),
      tasks: fc.integer({ min: 1, max: 40 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('time' as const),
      ms: fc.constantFrom(1, 20, 120, 400),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('kill', 'freeze', 'thaw', 'start'),
      process,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'resume' }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reset' }) },
);

const plan = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 50 }),
  seed: fc.nat(),
  shards: fc.constantFrom(1, 2),
  onUnanswered: fc.constantFrom('park' as const, 'compensate' as const),
  troublePercent: fc.constantFrom(0, 15, 40),
});
type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

const undoes: Readonly<Record<string, string>> = {
  'stock.reserve': 'stock.release',
  'card.charge': 'card.refund',
};

async function simulate(scheduler: fc.Scheduler, each: Plan): Promise<void> {
  const clock = fakeClock();
  const db = openMemory({ clock });
  const random = seededRandom(each.seed);
  const { shards, onUnanswered } = each;
  const retry = { ...quickRetry, attemptsMax: 2 };
  const saga = orderSaga({ shards, onUnanswered, paymentMs: 500, retry });
  const admin = sagaAdmin(db, saga, { clock });
  const keys = new Map<string, string>();
  const rejected = new Set<string>();
  const effects: string[] = [];
  let isHealed = false;

  /**
   * Behaves like an aggregate: each key takes effect once, and a rejected step stays rejected (a later
   * acceptance is tested in saga-trouble.test.ts). CommandRejected compensations succeed after the faults end.
   */
  const receive: SendCommand = async ({ command, idempotencyKey = '' }) => {
    const trouble = isHealed || random.below(100) >= each.troublePercent ? 3 : random.below(3);
    if (trouble === 0) throw new Error('unavailable');
    const effect = `${command.type} ${(command.payload as { orderId: string }).orderId}`;
    if (!keys.has(idempotencyKey)) {
      if (trouble === 1) rejected.add(idempotencyKey);
      const isUndo = Object.values(undoes).includes(command.type);
      const isRejected = rejected.has(idempotencyKey) && !(isUndo && isHealed);
      if (isRejected) throw new CommandRejected('said-no', 'rejected');
      keys.set(idempotencyKey, effect);
      effects.push(effect);
    }
    if (trouble === 2) throw new Error('the result is lost');
  };

  interface Simulated {
    isDead: boolean;
    frozen: PromiseWithResolvers<void> | undefined;
  }
  const processes: (Simulated | undefined)[] = [];
  const runners: { stop: () => Promise<void> }[] = [];

  function start(slot: number): void {
    if (processes[slot] !== undefined) return;
    const simulated: Simulated = { isDead: false, frozen: undefined };
    processes[slot] = simulated;
    const through = throughHops(db, receive, async (label) => {
      await scheduler.schedule(Promise.resolve(), label);
      await simulated.frozen?.promise;
      if (simulated.isDead) await new Promise<never>(() => undefined);
    });
    const runner = createSagaRunner(through.roles, saga, {
      send: through.send,
      clock,
      leaseMs,
      checkpointEvery: 3,
      checkpointMs: 20,
      pollMs: 50,
      timerPollMs: 50,
      pageSize: 4,
      drainMs: 1_000,
    });
    void runner.start();
    runners.push(runner);
  }

  async function go(tasks: number): Promise<void> {
    for (let task = 0; task < tasks; task += 1) {
      for (let turn = 0; turn < 3 && scheduler.count() === 0; turn += 1) {
        await new Promise(setImmediate);
      }
      if (scheduler.count() === 0) return;
      await scheduler.waitOne();
    }
  }

  async function pass(ms: number): Promise<void> {
    await clock.advance(ms);
    await new Promise(setImmediate);
  }

  async function resumeAll(): Promise<void> {
    for (const order of orders) {
      const address = { tenant: 'core', key: order };
      const info = await admin.get(address).catch(() => undefined);
      if (info?.status === 'parked') await admin.resume(address, { by: 'model' });
    }
  }

  const started = new Set<string>();
  start(0);
  start(1);
  for (const given of each.steps) {
    if (given.kind === 'append') {
      if (given.event === 'placed') started.add(given.order);
      await append(db.store, events[given.event]({ orderId: given.order }));
    } else if (given.kind === 'go') await go(given.tasks);
    else if (given.kind === 'time') await pass(given.ms);
    else if (given.kind === 'resume') await resumeAll();
    else if (given.kind === 'reset') {
      const known = await db.subscriptions.checkpoints.get(saga.subscription);
      if (known !== undefined) {
        await db.subscriptions.checkpoints.reset(saga.subscription, startPosition, {
          by: 'model',
          atMs: 0,
        });
      }
    } else if (given.kind === 'start') start(given.process);
    else {
      const simulated = processes[given.process];
      if (simulated === undefined) continue;
      if (given.kind === 'freeze') simulated.frozen ??= Promise.withResolvers();
      if (given.kind === 'kill') simulated.isDead = true;
      if (given.kind !== 'freeze') simulated.frozen?.resolve();
      if (given.kind === 'kill') processes[given.process] = undefined;
    }
  }

  // Faults end, paused processes continue late, and operators resume parked sagas.
  isHealed = true;
  for (const simulated of processes) simulated?.frozen?.resolve();
  start(0);
  const open = async (): Promise<string[]> => {
    const infos = await Promise.all(
      [...started].map((key) => admin.get({ tenant: 'core', key }).catch(() => undefined)),
    );
    return infos.flatMap((info) =>
      info?.status === 'completed' || info?.status === 'compensated'
        ? []
        : [`${info?.key} ${info?.status}`],
    );
  };
  for (let round = 0; round < 10 || (await open()).length > 0; round += 1) {
    assert.ok(round < 800, `these did not end: ${(await open()).join(', ')}`);
    await resumeAll();
    await db.subscriptions.deadLetters.replay({}, { by: 'model', atMs: clock.now() });
    await go(100);
    await pass(25);
  }
  for (const simulated of processes) if (simulated !== undefined) simulated.isDead = true;
  for (const runner of runners) void runner.stop();

  assert.equal(new Set(effects).size, effects.length, `repeated: ${effects.join(', ')}`);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
  for (const order of orders) {
    const own = await db.store.readStream(`shop.fulfilment.v1-core-${order}`).toArray();
    const mine = effects.filter((effect) => effect.endsWith(` ${order}`));
    const had = mine.map((effect) => effect.slice(0, -order.length - 1));
    if (!started.has(order)) {
      assert.deepEqual(had, []);
      continue;
    }
    const { status, steps } = await admin.get({ tenant: 'core', key: order });
    const log = own.map(({ type, payload }) => `${type} ${JSON.stringify(payload)}`).join('\n');
    const why = `${order} ${status}: ${had.join(', ')}\n${log}`;
    const kinds = own.map(({ type }) => type.split('.')[1]);
    const ends = kinds.filter((kind) => kind === 'completed' || kind === 'compensated');
    assert.deepEqual(ends, [kinds.at(-1)], why);
    const undone = had.filter((type) => Object.values(undoes).includes(type));
    const done = had.filter((type) => !undone.includes(type));
    // The saga knows exactly the commands that took effect.
    const known = steps.filter((each_) => each_.status !== 'failed').map((each_) => each_.command);
    if (onUnanswered === 'park') assert.deepEqual(done, known, why);
    else for (const type of done) assert.ok(known.includes(type), why);
    if (status === 'completed') {
      assert.deepEqual(undone, [], why);
      assert.equal(done.length, 3, why);
    } else {
      const expected = known.toReversed().flatMap((type) => undoes[type ?? ''] ?? []);
      assert.deepEqual(undone, expected, why);
    }
  }
}

const runs = soakMinutes > 0 ? 5_000 : 20;

test(`in ${runs} simulated runs with faults, every saga ends, each command takes effect once, and exactly the completed steps are compensated in reverse`, async () => {
  await fc.assert(fc.asyncProperty(fc.scheduler(), plan, simulate), {
    numRuns: runs,
    ...(globalThis.process.env['MILLRACE_SEED'] === undefined
      ? {}
      : { seed: Number(globalThis.process.env['MILLRACE_SEED']) }),
  });
});

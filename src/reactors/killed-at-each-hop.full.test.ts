import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../testing/support/subscriptions/rig.ts';
import { orderSaga, paid, placed } from '../testing/support/reactors/example-order.ts';
import { throughHops } from '../testing/support/reactors/hops.ts';
import { append, createSagaRig, type Receiver } from '../testing/support/reactors/saga-rig.ts';
import { createSagaRunner } from './saga-runner.ts';
import type { SagaStatus } from './saga-state.ts';

interface Scenario {
  readonly title: string;
  readonly prepare: (receiver: Receiver) => void;
  readonly isPaid: boolean;
  readonly end: SagaStatus;
  readonly effects: readonly string[];
}

const scenarios: readonly Scenario[] = [
  {
    title: 'every step is accepted',
    prepare: () => undefined,
    isPaid: true,
    end: 'completed',
    effects: ['stock.reserve o1', 'card.charge o1', 'parcel.ship o1'],
  },
  {
    title: 'the last step is rejected',
    prepare: (receiver) => receiver.answer('parcel.ship', 'reject'),
    isPaid: true,
    end: 'compensated',
    effects: ['stock.reserve o1', 'card.charge o1', 'card.refund o1', 'stock.release o1'],
  },
  {
    title: 'the timer fires',
    prepare: () => undefined,
    isPaid: false,
    end: 'compensated',
    effects: ['stock.reserve o1', 'stock.release o1'],
  },
];

const tuning = { leaseMs: 300, checkpointMs: 20, pollMs: 100, timerPollMs: 1_000, drainMs: 1_000 };

/** Returns the hop at which the first process was killed; undefined: it finished before. */
async function runKilledAt(killAt: number, scenario: Scenario): Promise<string | undefined> {
  const saga = orderSaga(scenario.isPaid ? {} : { paymentMs: 100 });
  const { clock, db, receiver, admin, at } = createSagaRig(saga);
  scenario.prepare(receiver);
  let hops = 0;
  let killedAt: string | undefined;
  const first = throughHops(db, receiver.send, async (label) => {
    hops += 1;
    if (hops === killAt) killedAt = label;
    if (hops >= killAt) await new Promise<never>(() => undefined);
  });
  const options = { clock, ...tuning };
  // Never stopped, like a killed process.
  void createSagaRunner(first.roles, saga, { ...options, send: first.send }).start();
  await append(db.store, placed({ orderId: 'o1' }));
  if (scenario.isPaid) await append(db.store, paid({ orderId: 'o1' }));
  const isOver = async (): Promise<boolean> => {
    const { items: sagas } = await admin.list({ status: scenario.end });
    return sagas.length === 1;
  };
  await until(clock, async () => killedAt !== undefined || (await isOver()));
  const second = createSagaRunner(db, saga, { ...options, send: receiver.send });
  await second.start();
  await until(clock, isOver);
  await second.stop();

  const why = `${scenario.title}, killed at hop ${killAt}: ${killedAt}`;
  assert.deepEqual(receiver.effects, scenario.effects, why);
  assert.equal((await admin.get(at('o1'))).status, scenario.end, why);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0, why);
  const own = await db.store.readStream('shop.fulfilment.v1-core-o1').toArray();
  const ends = own.filter(({ type }) => type === `fulfilment.${scenario.end}.v1`);
  assert.equal(ends.length, 1, why);
  assert.equal(own.at(-1)?.type, `fulfilment.${scenario.end}.v1`, why);
  return killedAt;
}

for (const scenario of scenarios) {
  test(`after a kill at any hop, another process reaches the same result when ${scenario.title}`, async () => {
    const seen = new Set<string>();
    for (let killAt = 1; ; killAt += 1) {
      const label = await runKilledAt(killAt, scenario);
      if (label === undefined) break;
      seen.add(label);
    }
    const calls = ['append', 'append answered', 'sagas.put', 'sagas.put answered'];
    for (const call of [...calls, 'send stock.reserve', 'send stock.reserve answered']) {
      assert.ok(seen.has(call), `${call} is not among ${[...seen].join(', ')}`);
    }
  });
}

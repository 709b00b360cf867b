// Kills workers at random while sagas run, and checks the sagas afterwards.

import assert from 'node:assert/strict';
import { createEnvelope, type NewEvent } from '../../src/contracts/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { sagaAdmin, type SagaRoles } from '../../src/reactors/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom, type SeededRandom } from '../../src/testing/seeded-random.ts';
import { isText, soakMinutes, until, type EngineName } from '../store/rig.ts';
import { expectedEntries, kindOf, orderSaga, paid, placed } from './order-saga.ts';
import type { SagaWorkerInput } from './worker-main.ts';

export interface SagaPlan {
  readonly engine: EngineName;
  readonly url: string;
  readonly seed: number;
  /** The URL of a separate index, and what disturbs it in addition to the kills. Default: the index of the store. */
  readonly elsewhere?: {
    readonly url: string;
    readonly disturb: (random: SeededRandom) => Promise<void>;
  };
}

const workers = 2;
const leaseMs = 1_000;
const { ordersMin, faults } =
  soakMinutes > 0 ? { ordersMin: 300, faults: 40 } : { ordersMin: 12, faults: 1 };

export async function killSagas(plan: SagaPlan, roles: SagaRoles): Promise<void> {
  const { engine, url, seed, elsewhere } = plan;
  const random = seededRandom(seed);
  let generation = 0;
  const start = (): Child => {
    generation += 1;
    const name = `w${generation}`;
    const common = { engine, url, name, seed: seed + generation, leaseMs };
    const input: SagaWorkerInput =
      elsewhere === undefined ? common : { ...common, index: elsewhere.url };
    return startChild(new URL('./worker-main.ts', import.meta.url), { input });
  };
  const children = Array.from({ length: workers }, start);
  const faulting = new AbortController();
  let orderIds: readonly string[] = [];
  try {
    await Promise.race(children.map((child) => child.message(isText('started'))));
    const appending = appendOrders(roles.store, faulting.signal);
    for (let fault = 0; fault < faults; fault += 1) {
      const slot = random.below(children.length);
      const child = children[slot] as Child;
      // Orders arrive until the last fault, so the worker has sagas that a kill could lose.
      await child.message(isText('sent'));
      await systemClock.sleep(random.below(300));
      await child.kill('SIGKILL');
      await elsewhere?.disturb(random);
      children[slot] = start();
    }
    faulting.abort();
    orderIds = await appending;
    await untilAllEnded(roles, orderIds.length);
  } finally {
    faulting.abort();
    await Promise.all(children.map((child) => child.kill()));
  }
  await check(roles, orderIds, seed);
}

/** Appends until the signal fires and `ordersMin` is reached; resolves to the ids. */
async function appendOrders(store: EventStore, signal: AbortSignal): Promise<readonly string[]> {
  const orderIds: string[] = [];
  while (orderIds.length < ordersMin || !signal.aborted) {
    const orderId = `o${orderIds.length}`;
    orderIds.push(orderId);
    const isPaid = kindOf(orderId) !== 'unpaid';
    // The two events are appended concurrently, in two streams, so their order is random.
    await Promise.all([
      append(store, placed({ orderId })),
      isPaid ? append(store, paid({ orderId })) : undefined,
    ]);
    await systemClock.sleep(soakMinutes > 0 ? 50 : 100);
  }
  return orderIds;
}

async function append(store: EventStore, event: NewEvent): Promise<void> {
  const { orderId } = event.payload as { orderId: string };
  const [type = ''] = event.type.split('.');
  const aggregate = { bc: 'shop', type, id: orderId };
  const envelope = createEnvelope(event, { tenant: 'core', aggregate });
  await store.append(`shop.${type}.v1-core-${orderId}`, [envelope]);
}

/** Waits until all sagas have ended; resumes parked ones, as an operator would. */
async function untilAllEnded(roles: SagaRoles, orders: number): Promise<void> {
  const admin = sagaAdmin(roles, orderSaga);
  const isOver = async (): Promise<boolean> => {
    for (const { tenant, key } of (await admin.list({ status: 'parked' })).items) {
      await admin.resume({ tenant, key }, { by: 'rig' }).catch(() => undefined);
    }
    const ended = await Promise.all(
      (['completed', 'compensated'] as const).map((status) => admin.list({ status, limit: 1_000 })),
    );
    return ended.reduce((sum, { items }) => sum + items.length, 0) === orders;
  };
  const isOverOrUnreachable = async (): Promise<boolean> => {
    try {
      return await isOver();
    } catch (error) {
      if (hasCode(error, 'STORE_UNAVAILABLE') && error.retryable) return false;
      throw error;
    }
  };
  await until('every saga has ended', isOverOrUnreachable, 120_000);
}

async function check(roles: SagaRoles, orderIds: readonly string[], seed: number): Promise<void> {
  const { store, subscriptions } = roles;
  const admin = sagaAdmin(roles, orderSaga);
  for (const orderId of orderIds) {
    const kind = kindOf(orderId);
    const { status } = await admin.get({ tenant: 'core', key: orderId });
    const entries = await store.readStream(`shop.ledger.v1-core-${orderId}`).toArray();
    const own = await store.readStream(`shop.orderFlow.v1-core-${orderId}`).toArray();
    const why = `seed ${seed}, ${orderId} ${kind}: ${own.map(({ type }) => type).join(', ')}`;
    assert.equal(status, kind === 'completed' ? 'completed' : 'compensated', why);
    assert.deepEqual(
      entries.map(({ payload }) => (payload as { what: string }).what),
      expectedEntries[kind],
      why,
    );
    const fired = own.filter(({ type }) => type === 'order-flow.timer-fired.v1');
    assert.equal(fired.length, kind === 'unpaid' ? 1 : 0, why);
    // Every effect has the correlation id of the event that started the saga.
    const [first] = await store.readStream(`shop.order.v1-core-${orderId}`).toArray();
    for (const event of entries) assert.equal(event.correlationId, first?.correlationId, why);
  }
  assert.equal(await subscriptions.deadLetters.count({}), 0);
}

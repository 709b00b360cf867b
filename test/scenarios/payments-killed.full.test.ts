// Kills the process at hops of a payment and restarts it: every payment ends once, at the provider, in
// the account and at the webhook.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyWebhook } from '../../src/destinations/webhook/index.ts';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import { startChild, startHttpReceiver, type Child } from '../../src/testing/index.ts';
import {
  openAccount,
  payments,
  pretendProvider,
  requestPayment,
  type AccountDocument,
  type Charge,
  type ChargeResult,
} from '../../modules/payments/index.ts';
import { createWorkspace, until } from '../store/rig.ts';
import { outboxOf } from './outbox-of.ts';
import type { PaymentsWorkerInput } from './payments-worker-main.ts';

const tenant = 'core';
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const balance = 1_000_000;
const orders = Array.from({ length: 12 }, (_, at) => ({ id: `p-${at}`, amount: 100 + at }));
const isDeclined = ({ amount }: { readonly amount: number }): boolean => amount % 5 === 0;

/** The n-th occurrence of each: a request before or after its response, or an event. */
const killPoints = new Set([
  'account.reserved.v1 4',
  '/charge unanswered 3',
  '/charge answered 7',
  'payment.processed.v1 5',
  '/hook unanswered 5',
  'payment.failed.v1 2',
]);
const killsPlanned = killPoints.size;

test('payments whose process is killed at a hop all end, with each effect once', async () => {
  await using workspace = await createWorkspace();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const counts = new Map<string, number>();
  /** Counts the occurrence, and returns true if the process must be killed now. */
  const isTime = (what: string): boolean => {
    const count = (counts.get(what) ?? 0) + 1;
    counts.set(what, count);
    return killPoints.delete(`${what} ${count}`);
  };

  let child: Child;
  let kills = 0;
  let restarting = Promise.resolve();
  const start = (input: PaymentsWorkerInput): Child =>
    startChild(new URL('./payments-worker-main.ts', import.meta.url), { input });
  const restart = async (before: Promise<void>): Promise<void> => {
    await before;
    await child.kill('SIGKILL');
    child = start(input);
  };
  const killAndRestart = (): void => {
    kills += 1;
    restarting = restart(restarting);
  };

  const results = new Map<string, ChargeResult>();
  const hooks = new Map<string, string>();
  let charges = 0;
  await using outside = await startHttpReceiver({
    answer({ path, body, headers }, response) {
      let result: object = {};
      if (path === '/charge') {
        const charge = JSON.parse(body) as Charge;
        charges += 1;
        result = results.get(charge.key) ?? resultOf(charge);
        results.set(charge.key, result as ChargeResult);
      } else {
        assert.equal(path, '/hook', 'a payment was cancelled');
        const { id } = verifyWebhook({ body, headers, secrets: [secret] });
        const { type, data } = JSON.parse(body) as { type: string; data: { paymentId: string } };
        hooks.set(id, `${data.paymentId} ${type}`);
      }
      if (isTime(`${path} unanswered`)) {
        killAndRestart();
        response.destroy();
        return;
      }
      response.end(JSON.stringify(result), () => {
        if (isTime(`${path} answered`)) killAndRestart();
      });
    },
  });
  const input = { store, url: outside.url, secret };

  // This platform only accepts requests; the killed process does the rest.
  await using platform = await createPlatform({
    engines: { store },
    roles: ['api'],
    modules: [payments({ provider: pretendProvider(), webhooks: { shop: async () => undefined } })],
  });
  await platform.start();
  const watching = new AbortController();
  const watched = watch(platform, watching.signal, (type) => {
    if (isTime(type)) killAndRestart();
  });
  const ask = (id: string, command: { type: string; payload: unknown }): Promise<unknown> =>
    platform.handle({ tenant, id, command });
  await ask('a-1', openAccount({ currency: 'USD', balance }));
  child = start(input);
  try {
    for (const { id, amount } of orders) {
      const order = { account: 'a-1', amount, currency: 'USD', creditor: 'shop-1' };
      await ask(id, requestPayment(order));
    }
    await until('every payment is reported to the webhook and settled', () =>
      isOver(platform, hooks),
    );
    await restarting;
  } finally {
    watching.abort();
    await watched;
    await restarting;
    await child.kill();
  }

  assert.equal(killPoints.size, 0, `these kills did not happen: ${[...killPoints].join(', ')}`);
  assert.equal(kills, killsPlanned);
  assert.equal(results.size, orders.length);
  assert.ok(charges > orders.length, 'no charge was repeated');
  const expectedHooks = orders.map((order) => `${order.id} payment.${endOf(order)}.v1`);
  assert.deepEqual([...hooks.values()].toSorted(), expectedHooks.toSorted());
  for (const order of orders) {
    const { store: events } = platform.engines;
    const stream = await events.readStream(`paymenthub.payment.v1-core-${order.id}`).toArray();
    const actions = endOf(order) === 'failed' ? ['failed'] : ['processed', 'completed'];
    assert.deepEqual(
      stream.map(({ type }) => type),
      ['requested', 'queued', ...actions].map((action) => `payment.${action}.v1`),
    );
  }
  assert.equal(await platform.engines.subscriptions.deadLetters.count({}), 0);
  assert.equal((await outboxOf(platform).counts()).DEAD, 0);
});

function resultOf(charge: Charge): ChargeResult {
  return isDeclined(charge)
    ? { kind: 'declined', reason: 'declined' }
    : { kind: 'accepted', reference: `r-${charge.paymentId}` };
}

function endOf(order: { readonly amount: number }): 'completed' | 'failed' {
  return isDeclined(order) ? 'failed' : 'completed';
}

async function watch(
  platform: Platform,
  signal: AbortSignal,
  onEvent: (type: string) => void,
): Promise<void> {
  try {
    for await (const item of platform.engines.store.subscribe({ signal })) {
      if (item.kind === 'events') for (const { type } of item.events) onEvent(type);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function isOver(platform: Platform, hooks: ReadonlyMap<string, string>): Promise<boolean> {
  if (hooks.size < orders.length) return false;
  const accounts = platform.documents({ bc: 'banking', aggregate: 'account' });
  const found = (await accounts.get(tenant, 'a-1'))?.document as AccountDocument | undefined;
  const paid = orders.filter((order) => !isDeclined(order));
  const left = paid.reduce((sum, { amount }) => sum - amount, balance);
  const { PENDING, CLAIMED, FAILED } = await outboxOf(platform).counts();
  return found?.reserved === 0 && found.balance === left && PENDING + CLAIMED + FAILED === 0;
}

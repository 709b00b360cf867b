// Parked streams over HTTP, and the events that wait for the dead letter which parks them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineModule } from '../../../platform/index.ts';
import { subscription, Terminal } from '../../../subscriptions/index.ts';
import { body, openApi, until, type Api } from '../../../testing/support/server/api-rig.ts';

interface Page<Item> {
  readonly items: readonly Item[];
  readonly cursor?: string;
}
interface Parked {
  readonly id: string;
  readonly subscription: string;
  readonly stream: string;
  readonly tenant: string;
  readonly eventType: string;
  readonly revision: number;
  readonly error: string;
  readonly waiting: number;
}
interface Waiting {
  readonly type: string;
  readonly revision: number;
  readonly position: string;
}

const subscriptionName = 'sub:shop:mail:v1';

/** A subscription whose handler rejects the first event of each order. */
function mailer() {
  const state = { isFixed: false, handled: [] as string[] };
  const mail = subscription({
    name: subscriptionName,
    onDeadLetter: 'park',
    filter: { category: 'shop.order.v1' },
    handler: ({ stream, revision }) => {
      if (revision === 0 && !state.isFixed) throw new Terminal('no such mailbox');
      state.handled.push(`${stream}@${revision}`);
    },
  });
  return { state, module: defineModule({ name: 'shop', subscriptions: [mail] }) };
}

const list = async (api: Api, token: string, query = ''): Promise<readonly Parked[]> =>
  (await get<Page<Parked>>(api, `/admin/parked-streams${query}`, token)).items;

/** Appends events to one order, and waits until all but the first one wait. */
async function park(api: Api, tenant: string, events: number): Promise<void> {
  const token = await api.token('admin');
  const stream = `shop.order.v1-${tenant}-o1`;
  const sent = await api.post(
    `/api/v1/streams/${stream}/events`,
    {
      events: Array.from({ length: events }, (_, n) => ({
        type: 'order.changed.v1',
        payload: { n },
      })),
    },
    token,
    { 'x-tenant-id': tenant },
  );
  assert.ok(sent.ok, await sent.clone().text());
  await until(async () => {
    const [parked] = await list(api, token, `?stream=${stream}`);
    return parked?.waiting === events - 1;
  });
}

async function get<T>(api: Api, path: string, token: string): Promise<T> {
  const response = await api.ask(path, token);
  assert.equal(response.status, 200, `${path}: ${await response.clone().text()}`);
  return body<T>(response);
}

test('a parked stream shows its dead letter and its waiting events, and continues after the replay', async () => {
  const { state, module } = mailer();
  await using api = await openApi({}, undefined, [module]);
  const admin = await api.token('admin');
  await park(api, 'core', 4);
  const [parked] = await list(api, admin, `?subscription=${subscriptionName}`);
  assert.ok(parked);
  const { id, stream, revision, eventType, error, waiting } = parked;
  assert.deepEqual(
    [stream, revision, eventType, error, waiting],
    ['shop.order.v1-core-o1', 0, 'order.changed.v1', 'no such mailbox', 3],
  );
  const path = `/admin/parked-streams/${id}/events`;
  const first = await get<Page<Waiting>>(api, `${path}?limit=2`, admin);
  const rest = await get<Page<Waiting>>(api, `${path}?limit=2&cursor=${first.cursor}`, admin);
  const shown = [...first.items, ...rest.items].map((each) => [each.type, each.revision]);
  assert.deepEqual(
    shown,
    [1, 2, 3].map((each) => ['order.changed.v1', each]),
  );
  assert.equal((await api.ask(`${path}?cursor=x`, admin)).status, 400);

  state.isFixed = true;
  assert.equal((await api.post(`/admin/dlq/${id}/replay`, undefined, admin)).status, 202);
  await until(async () => (await list(api, admin)).length === 0);
  await until(() => state.handled.length === 4);
  assert.deepEqual(
    state.handled,
    [0, 1, 2, 3].map((each) => `shop.order.v1-core-o1@${each}`),
  );
  assert.deepEqual(await get<Page<Waiting>>(api, path, admin), { items: [] });
});

test('parked streams are paged, filtered and limited to the tenant of the caller', async () => {
  await using api = await openApi({}, undefined, [mailer().module]);
  const admin = await api.token('admin');
  for (const tenant of ['core', 'acme']) await park(api, tenant, 2);
  const operator = await api.token('operate', 'acme');
  const own = await list(api, operator);
  assert.deepEqual(
    own.map(({ tenant }) => tenant),
    ['acme'],
  );
  const [foreign] = await list(api, admin, '?tenant=core');
  assert.ok(foreign);
  assert.equal((await api.ask(`/admin/parked-streams/${foreign.id}/events`, operator)).status, 404);
  assert.equal((await api.ask('/admin/parked-streams?tenant=core', operator)).status, 403);
  assert.deepEqual(await list(api, admin, '?subscription=sub:shop:other:v1'), []);
  const first = await get<Page<Parked>>(api, '/admin/parked-streams?limit=1', admin);
  const next = `/admin/parked-streams?limit=1&cursor=${first.cursor}`;
  const second = await get<Page<Parked>>(api, next, admin);
  assert.notEqual(first.items[0]?.id, second.items[0]?.id);
  const others = `/admin/parked-streams?cursor=${foreign.id}`;
  assert.equal((await api.ask(others, operator)).status, 400);

  const discard = { reason: 'the order was cancelled' };
  assert.equal((await api.post(`/admin/dlq/${own[0]?.id}/discard`, discard, operator)).status, 200);
  assert.deepEqual(await list(api, operator), []);
});

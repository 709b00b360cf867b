// Admin actions over HTTP: they work, are limited to the tenant of the caller, and are audited.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchema } from '../../../contracts/schema.ts';
import { defineModule, type AuditEntry } from '../../../platform/index.ts';
import { createAuditLog } from '../../../platform/audit-log.ts';
import { projection, readModel } from '../../../projections/index.ts';
import { apiRoutes } from '../api-routes.ts';
import { acquireShard, newLetter } from '../../../testing/conformance/subscriptions/fixture.ts';
import { body, openApi, until, type Api } from '../../../testing/support/server/api-rig.ts';

interface Page<Item> {
  readonly items: readonly Item[];
  readonly cursor?: string;
}
interface Letter {
  readonly id: string;
  readonly status: string;
  readonly tenant: string;
  readonly eventId: string;
  readonly replayedBy: string | null;
  readonly discardReason: string | null;
  readonly notes: string;
}

async function get<T>(api: Api, path: string, token: string): Promise<T> {
  const response = await api.ask(path, token);
  assert.equal(response.status, 200, `${path}: ${await response.clone().text()}`);
  return body<T>(response);
}

const pages = async (api: Api, path: string, token: string): Promise<number> => {
  let count = 0;
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const page: Page<unknown> = await get(api, `${path}${cursor && `&cursor=${cursor}`}`, token);
    count += page.items.length;
    ({ cursor } = page);
  }
  return count;
};

test('a dead letter is found, annotated and replayed after the fix, under both paths', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  await api.fail('core');
  const { items } = await get<Page<Letter>>(api, '/admin/dlq', admin);
  const [letter] = items;
  assert.ok(letter);
  assert.equal(letter.status, 'pending');
  const path = `/api/v1/admin/dlq/${letter.id}`;
  await api.post(`${path}/note`, { notes: 'contacted the bank' }, admin);
  assert.equal((await get<Letter>(api, path, admin)).notes, 'contacted the bank');
  api.faults.isFixed = true;
  assert.equal((await api.ask(`${path}/replay`, admin, { method: 'POST' })).status, 202);
  await until(async () => (await get<Letter>(api, path, admin)).status === 'replayed');
  assert.match(String((await get<Letter>(api, path, admin)).replayedBy), /^t\d+$/);
  assert.equal((await api.ask(`${path}/replay`, admin, { method: 'POST' })).status, 409);
});

test('dead letters are filtered and paged, and discarding all of them must be explicit', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  await api.fail('core');
  await api.fail('acme');
  assert.equal(await pages(api, '/admin/dlq?limit=1', admin), 2);
  assert.equal(await pages(api, '/admin/dlq?tenant=acme&limit=1', admin), 1);
  assert.equal(await pages(api, '/admin/dlq?subscription=sub:banking:other:v1&limit=1', admin), 0);
  assert.equal(await pages(api, '/admin/dlq?since=2999-01-01&limit=1', admin), 0);
  assert.equal(await pages(api, '/admin/dlq?status=discarded&limit=1', admin), 0);
  const discard = async (sent: object) => api.post('/admin/dlq/discard', sent, admin);
  assert.equal((await discard({ reason: 'old' })).status, 400);
  assert.equal((await discard({ reason: 'old', all: true, tenant: 'core' })).status, 400);
  assert.equal((await discard({ reason: 'old', tennant: 'core' })).status, 400);
  assert.deepEqual(await body(await discard({ reason: 'old', tenant: 'core' })), { discarded: 1 });
  const [discarded] = (await get<Page<Letter>>(api, '/admin/dlq?status=discarded', admin)).items;
  assert.equal(discarded?.discardReason, 'old');
  const replayed = await api.post('/admin/dlq/replay', { all: true }, admin);
  assert.deepEqual(await body(replayed), { requested: 1 });
});

test('outbox messages are read, counted, replayed and purged, and destinations are paused', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  await api.fail('core');
  const dead = '/admin/outbox?status=DEAD';
  const { items } = await get<Page<{ id: string; lastError: string }>>(api, dead, admin);
  assert.match(items[0]?.lastError ?? '', /out of order/);
  const counts = await get<{ DEAD: number }>(api, '/admin/outbox/counts', admin);
  assert.equal(counts.DEAD, 1);
  const sent = { destination: 'partner:x' };
  const change = async (verb: string) => body(await api.post(`/admin/outbox/${verb}`, sent, admin));
  assert.deepEqual(await change('pause'), { ...sent, paused: true, changed: true });
  const paused = await get<Page<{ integrationType: string }>>(api, '/admin/outbox/paused', admin);
  assert.deepEqual(
    paused.items.map(({ integrationType }) => integrationType),
    ['partner:x'],
  );
  api.faults.isFixed = true;
  assert.equal((await api.post('/admin/outbox/replay', {}, admin)).status, 400);
  const ids = items.map(({ id }) => id);
  assert.deepEqual(await body(await api.post('/admin/outbox/replay', { ids }, admin)), {
    replayed: 1,
  });
  assert.deepEqual(await change('resume'), { ...sent, paused: false, changed: true });
  const path = `/admin/outbox/${ids[0]}`;
  await until(async () => (await get<{ status: string }>(api, path, admin)).status === 'SENT');
  const purge = await api.post('/admin/outbox/purge', { before: '2999-01-01T00:00:00Z' }, admin);
  assert.deepEqual(await body(purge), { purged: 3 });
  assert.equal((await api.ask(path, admin)).status, 404);
});

test('a subscription is paused, reset and resumed', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  await api.fail('core');
  const name = 'sub:banking:alarm:v1';
  const path = `/admin/subscriptions/${name}`;
  type Row = { subscription: string; state: string; workers: number; behind: number };
  const row = async () =>
    (await get<Page<Row>>(api, '/admin/subscriptions', admin)).items.find(
      ({ subscription }) => subscription === name,
    );
  assert.deepEqual([(await row())?.state, (await row())?.workers], ['running', 1]);
  const post = (verb: string, sent: object = {}) => api.post(`${path}/${verb}`, sent, admin);
  assert.equal((await post('reset', { to: 'start' })).status, 409);
  assert.equal((await post('pause')).status, 200);
  assert.equal((await row())?.state, 'paused');
  assert.equal((await post('reset', { to: 'soon' })).status, 400);
  const position = '0'.repeat(16);
  for (const to of ['start', position, '2001-01-01T00:00:00Z']) {
    assert.deepEqual(await body(await post('reset', { to })), { subscription: name, position });
  }
  assert.equal((await post('resume')).status, 200);
  await until(async () => (await row())?.behind === 0);
});

test('projections list their versions, and a version that queries use is not retired', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  type Row = { projection: string; active: boolean };
  const { items } = await get<Page<Row>>(api, '/admin/projections', admin);
  assert.deepEqual(
    items.map((each) => [each.projection, each.active]),
    [['sub:banking:accounts:v1', true]],
  );
  const path = '/admin/projections/sub:banking:accounts:v1';
  await until(async () => (await api.ask(`${path}/switch`, admin, { method: 'POST' })).ok);
  assert.equal((await api.ask(`${path}/retire`, admin, { method: 'POST' })).status, 409);
  const other = '/admin/projections/sub:banking:unknown:v1/switch';
  assert.equal((await api.ask(other, admin, { method: 'POST' })).status, 404);
});

test('a new version is rebuilt while queries use the old one, one rebuild at a time, and can be cancelled', async () => {
  const name = 'sub:banking:accounts:v2';
  const next = defineModule({
    name: 'next',
    projections: [
      projection({
        name,
        readModel: readModel<{ readonly n: number }>({
          bc: 'banking',
          aggregate: 'account',
          version: 2,
        }),
        filter: { category: 'banking.account.v1' },
        on: { 'account.deposited.v1': (before) => ({ n: (before?.n ?? 0) + 1 }) },
      }),
    ],
  });
  await using api = await openApi({}, { store: 'memory:' }, [next]);
  const admin = await api.token('admin');
  const { leases } = api.platform.engines.subscriptions;
  const command = { type: 'account.deposit', payload: { amount: 1 } };
  await api.platform.handle({ tenant: 'core', id: 'a1', command });
  type Row = { status: string; paused: boolean; rebuild?: { state: string; progress?: object } };
  const path = `/admin/projections/${name}`;
  const look = () => get<Row>(api, path, admin);
  const rebuild = () => api.ask(`${path}/rebuild`, admin, { method: 'POST' });
  const recorded = async () => {
    const { items } = await get<Page<AuditEntry>>(
      api,
      '/admin/audit?action=projection.rebuild',
      admin,
    );
    return items.map(({ outcome, error }) => error ?? outcome);
  };
  const isRecorded = async (...outcomes: readonly string[]) =>
    JSON.stringify(await recorded()) === JSON.stringify(outcomes);

  // Another process runs the projection, so the rebuild waits for the lease.
  const verb = (each: string) =>
    api.ask(`/admin/subscriptions/${name}/${each}`, admin, { method: 'POST' });
  assert.equal((await verb('pause')).status, 200);
  const shard = { subscription: name, shard: 0 };
  let token = 0;
  await until(async () => {
    const lease = await leases.acquire(shard, 'another', 600_000);
    token = lease.kind === 'acquired' ? lease.token : 0;
    return lease.kind === 'acquired';
  });
  const begun = await rebuild();
  assert.equal(begun.status, 202);
  assert.equal((await body<Row['rebuild']>(begun))?.state, 'running');
  assert.equal((await rebuild()).status, 409);
  assert.equal((await look()).rebuild?.state, 'running');
  const cancel = async () =>
    body(await api.ask(`${path}/rebuild/cancel`, admin, { method: 'POST' }));
  assert.deepEqual(await cancel(), { cancelled: true });
  assert.deepEqual(await cancel(), { cancelled: false });
  assert.equal((await look()).rebuild?.state, 'cancelled');
  await until(() => isRecorded('PROJECTION_BUSY', 'ABORTED'));
  await leases.release({ ...shard, token });
  assert.equal((await verb('resume')).status, 200);

  assert.equal((await rebuild()).status, 202);
  await until(async () => (await look()).rebuild?.state !== 'running');
  const { status, rebuild: built } = await look();
  assert.deepEqual([status, built?.state], ['ready', 'done']);
  assert.match(JSON.stringify(built?.progress), /"done":1/);
  await until(() => isRecorded('done', 'PROJECTION_BUSY', 'ABORTED'));
  // The process runs the projection again.
  const { position } = await api.platform.handle({ tenant: 'core', id: 'a1', command });
  assert.equal((await api.ask(`${path}/switch`, admin, { method: 'POST' })).status, 200);
  assert.equal((await rebuild()).status, 409, 'queries use this version now');
  await until(async () => {
    const found = await api.ask(`/api/v1/documents/banking/account/a1?waitFor=${position}`, admin, {
      headers: { 'x-tenant-id': 'core' },
    });
    return JSON.stringify(await found.json()).includes('"n":2');
  });
  const unknown = '/admin/projections/sub:banking:unknown:v1';
  assert.equal((await api.ask(unknown, admin)).status, 404);
  assert.equal((await api.ask(`${unknown}/rebuild`, admin, { method: 'POST' })).status, 404);
});

test('a parked saga is found, and resumes after the fix', async () => {
  await using api = await openApi();
  const admin = await api.token('admin', 'core');
  await api.fail('core');
  const { items } = await get<Page<{ stream: string }>>(api, '/admin/sagas?status=parked', admin);
  const stream = items[0]?.stream ?? '';
  const path = `/admin/sagas/${stream}`;
  assert.equal((await get<{ status: string }>(api, path, admin)).status, 'parked');
  api.faults.isFixed = true;
  const resumed = await api.post(`${path}/resume`, { note: 'fixed' }, admin);
  assert.equal(resumed.status, 200);
  await until(async () => (await get<{ status: string }>(api, path, admin)).status === 'running');
  assert.equal((await api.post(`${path}/resume`, {}, admin)).status, 409);
});

test('a token is created, used and revoked; its secret is returned once and not stored', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  const wanted = { name: 'shop', scopes: ['read'], tenant: 'core' };
  const created = await api.post('/admin/tokens', wanted, admin);
  assert.equal(created.status, 201);
  const { secret } = await body<{ secret: string }>(created);
  assert.equal((await api.ask('/api/v1/events', secret)).status, 200);
  assert.equal((await api.post('/admin/tokens', wanted, admin)).status, 409);
  for (const path of ['/admin/tokens', '/admin/audit', '/api/v1/streams/$millrace-audit/events']) {
    assert.ok(!(await (await api.ask(path, admin)).text()).includes(secret), path);
  }
  const revoked = await api.ask('/admin/tokens/shop/revoke', admin, { method: 'POST' });
  assert.equal((await body<{ state: string }>(revoked)).state, 'revoked');
  assert.equal((await api.ask('/api/v1/events', secret)).status, 401);
});

test('a tenant admin has access to the data of the tenant, and not to shared resources', async () => {
  await using api = await openApi();
  const [boss, mine] = [await api.token('admin'), await api.token('admin', 'core')];
  await api.fail('core');
  await api.fail('acme');
  for (const list of ['/admin/dlq', '/admin/outbox', '/admin/sagas']) {
    const seen = await get<Page<{ tenant?: string; tenantId?: string }>>(api, list, mine);
    assert.ok(seen.items.length > 0, list);
    const tenants = new Set(seen.items.map(({ tenant, tenantId }) => tenant ?? tenantId));
    assert.deepEqual([...tenants], ['core'], list);
    assert.equal((await api.ask(`${list}?tenant=acme`, mine)).status, 403, list);
    const theirs = await get<Page<{ id?: string; stream?: string }>>(
      api,
      `${list}?tenant=acme`,
      boss,
    );
    const key = theirs.items[0]?.id ?? theirs.items[0]?.stream ?? '';
    assert.equal((await api.ask(`${list}/${key}`, mine)).status, 404, list);
    const cursor = await api.ask(`${list}?cursor=${key}`, mine);
    assert.ok(!(await cursor.text()).includes('acme'), list);
  }
  const [letter] = (await get<Page<Letter>>(api, '/admin/dlq?tenant=acme', boss)).items;
  const sent = { reason: 'mine now', notes: 'n' };
  for (const verb of ['replay', 'discard', 'note']) {
    const { reason, notes } = sent;
    const change = verb === 'discard' ? { reason } : { notes };
    const response = await api.post(`/admin/dlq/${letter?.id}/${verb}`, change, mine);
    assert.equal(response.status, 404, verb);
  }
  const ids = [letter?.id];
  assert.deepEqual(await body(await api.post('/admin/dlq/replay', { ids }, mine)), {
    requested: 0,
  });
  const all = { all: true, reason: 'mine' };
  assert.deepEqual(await body(await api.post('/admin/dlq/discard', all, mine)), { discarded: 1 });
  assert.deepEqual(await body(await api.post('/admin/outbox/replay', { all: true }, mine)), {
    replayed: 1,
  });
  for (const path of [
    '/admin/subscriptions',
    '/admin/projections',
    '/admin/projections/sub:banking:accounts:v1',
    '/admin/tokens',
    '/admin/outbox/counts',
    '/admin/outbox/paused',
  ]) {
    assert.equal((await api.ask(path, mine)).status, 403, path);
  }
  for (const [path, given] of [
    ['/admin/outbox/pause', { destination: 'partner:x' }],
    ['/admin/outbox/purge', { before: '2999-01-01' }],
    ['/admin/tokens', { name: 'mine', scopes: ['admin'] }],
    ['/admin/subscriptions/sub:banking:alarm:v1/pause', {}],
    ['/admin/projections/sub:banking:accounts:v1/rebuild', {}],
    ['/admin/projections/sub:banking:accounts:v1/rebuild/cancel', {}],
  ] as const) {
    assert.equal((await api.post(path, given, mine)).status, 403, path);
  }
  const audit = await get<Page<AuditEntry>>(api, '/admin/audit', mine);
  assert.ok(audit.items.length > 0);
  assert.ok(audit.items.every(({ actor }) => actor.tenant === 'core'));
});

test('rejects credentials without the scope admin', async () => {
  await using api = await openApi();
  const reader = await api.token('append', 'core');
  for (const path of ['/admin/dlq', '/api/v1/admin/dlq', '/admin/audit', '/admin/tokens']) {
    assert.equal((await api.ask(path, reader)).status, 403);
    assert.equal((await api.ask(path)).status, 401);
  }
});

/** The body for each route that changes something; a missing one fails the test. */
const actions: Readonly<Record<string, object>> = {
  '/admin/dlq/{id}/replay': {},
  '/admin/dlq/{id}/discard': { reason: 'r' },
  '/admin/dlq/{id}/note': { notes: 'n' },
  '/admin/dlq/replay': { all: true },
  '/admin/dlq/discard': { all: true, reason: 'r' },
  '/admin/outbox/discard': { ids: ['01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77'], reason: 'r' },
  '/admin/outbox/replay': { all: true },
  '/admin/outbox/retry': { ids: ['01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77'] },
  '/admin/outbox/pause': { destination: 'd' },
  '/admin/outbox/resume': { destination: 'd' },
  '/admin/outbox/purge': { before: '2000-01-01' },
  '/admin/subscriptions/{name}/pause': {},
  '/admin/subscriptions/{name}/resume': {},
  '/admin/subscriptions/{name}/reset': { to: 'start' },
  '/admin/projections/{name}/rebuild': {},
  '/admin/projections/{name}/rebuild/cancel': {},
  '/admin/projections/{name}/switch': {},
  '/admin/projections/{name}/retire': {},
  '/admin/sagas/{stream}/resume': {},
  '/admin/jobs/cancel': { type: 'email-send' },
  '/admin/jobs/ends/{group}/forget': {},
  '/admin/jobs/retry': { type: 'email-send' },
  '/admin/jobs/types/{type}/drain': {},
  '/admin/jobs/types/{type}/pause': {},
  '/admin/jobs/types/{type}/resume': {},
  '/admin/jobs/{id}/cancel': {},
  '/admin/jobs/{id}/retry': {},
  '/admin/tokens': { name: 'n', scopes: ['read'] },
  '/admin/tokens/{token}/revoke': {},
};

test('every admin action is audited with actor, action, address and outcome', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  const audit = createAuditLog(api.platform.engines.store);
  const routes = apiRoutes({ platform: api.platform, audit }, { info: { title: '', version: '' } });
  const changing = routes.filter(
    ({ method, path }) => method !== 'GET' && path.startsWith('/admin/'),
  );
  assert.deepEqual(changing.map(({ path }) => path).toSorted(), Object.keys(actions).toSorted());
  for (const { path } of changing) {
    const id = '01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77';
    const url = path.replace(/\{stream\}/, 'banking.review.v1-core-x').replace(/\{\w+\}/, id);
    const response = await api.post(url, actions[path], admin);
    const [entry] = (await get<Page<AuditEntry>>(api, '/admin/audit?limit=1', admin)).items;
    assert.equal(entry?.requestId, response.headers.get('x-request-id'), path);
    assert.equal(entry?.outcome, response.ok ? 'done' : 'failed', path);
    assert.equal(entry?.actor.address, '127.0.0.1');
  }
  const failed = (await get<Page<AuditEntry>>(api, '/admin/audit', admin)).items.filter(
    ({ outcome }) => outcome === 'failed',
  );
  assert.ok(failed.every(({ error }) => error !== undefined && error !== 'INTERNAL'));
  assert.equal(await pages(api, '/admin/audit?limit=2', admin), changing.length);
  assert.equal(await pages(api, '/admin/audit?limit=2&action=token.create', admin), 1);
  assert.equal(await pages(api, '/admin/audit?limit=2&actor=unknown', admin), 0);
  assert.equal(await pages(api, '/admin/audit?limit=2&since=2999-01-01', admin), 0);
  assert.equal(await pages(api, '/admin/audit?limit=2&until=2001-01-01', admin), 0);
});

test('responses match the OpenAPI document', async () => {
  await using api = await openApi();
  const admin = await api.token('admin');
  await api.fail('core');
  const [letter] = (await get<Page<Letter>>(api, '/admin/dlq', admin)).items;
  const [message] = (await get<Page<{ id: string }>>(api, '/admin/outbox', admin)).items;
  await api.post('/admin/outbox/pause', { destination: 'd' }, admin);
  const { store, subscriptions } = api.platform.engines;
  const [event] = await store.readAll({ limit: 1 }).toArray();
  const fence = await acquireShard(subscriptions);
  const parked = newLetter(fence, { parked: true });
  await subscriptions.deadLetters.add(fence, parked);
  const audit = createAuditLog(store);
  const routes = apiRoutes({ platform: api.platform, audit }, { info: { title: '', version: '' } });
  for (const { method, path, responses } of routes) {
    if (method !== 'GET' || !path.startsWith('/admin/')) continue;
    const id = (path.includes('dlq') ? letter?.id : message?.id) ?? '';
    const url = path
      .replace('{stream}', 'banking.review.v1-core-saga')
      .replace('{correlationId}', event?.correlationId ?? '')
      .replace('{name}', 'sub:banking:accounts:v1')
      .replace('{letter}', parked.id)
      .replace('{id}', id);
    const response = await get<unknown>(api, url, admin);
    const schema = responses[200]?.schema;
    assert.ok(schema, path);
    assert.deepEqual(compileSchema(schema).problems(response), [], path);
  }
});

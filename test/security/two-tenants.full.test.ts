// One tenant has data everywhere; the administrator of another one tries everything. One table for every protocol.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  jsonEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@kurrent/kurrentdb-client';
import { until } from '../../src/testing/support/server/api-rig.ts';
import {
  throwawayCertificate,
  type Certificate,
} from '../../src/testing/support/throwaway-certificate.ts';
import { openTenantRig, type Identity, type TenantRig } from './tenant-rig.ts';

const victim = 'aaa';
const stream = `shop.order.v1-${victim}-1`;
const flow = 'flow-of-aaa';
const foreign = { 'x-tenant-id': victim };
/** In every payload and title of the victim. */
const marker = 'secret-of-aaa';

let tls: Certificate;
let rig: TenantRig;
let attacker: Identity;
/** Ids of the victim's data. */
let ids: Readonly<Record<'job' | 'letter' | 'message' | 'saga', string>>;

before(async () => {
  tls = throwawayCertificate();
  rig = await openTenantRig(tls);
  attacker = (await rig.token('bbb')) as Identity;
  ids = await fill(rig);
});
after(async () => {
  await rig[Symbol.asyncDispose]();
  tls[Symbol.dispose]();
});

async function fill(filled: TenantRig): Promise<typeof ids> {
  const { api } = filled;
  const { bearer } = (await filled.token(victim)) as Identity;
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await api.post(path, body, bearer, { 'x-correlation-id': flow });
    assert.ok(answer.status < 300, await answer.clone().text());
    return (await answer.json()) as Record<string, unknown>;
  };
  const payload = { marker };
  await post(`/api/v1/streams/${stream}/events`, {
    events: [{ type: 'order.placed.v1', payload }],
  });
  const { id } = await post('/api/v1/jobs', { type: 'report-gen', payload });
  await post('/api/v1/notify/customers/cust_1/notifications', { category: 'info', title: marker });
  await post('/api/v1/notify/broadcasts', { category: 'announcement', title: marker });
  await api.fail(victim, flow);
  const { engines, traces } = api.platform;
  await until(async () => (await traces.get(flow, { tenant: victim })).nodes.length > 0);
  const [letter] = await engines.subscriptions.deadLetters.list({ tenant: victim });
  const [message] = (await engines.outbox?.list({ tenantId: victim, status: 'DEAD' })) ?? [];
  const [saga] = await engines.sagas.list({ tenant: victim, status: 'parked' });
  return {
    job: String(id),
    letter: letter?.id ?? '',
    message: message?.id ?? '',
    saga: saga?.stream ?? '',
  };
}

type Call = readonly [
  path: string,
  init?: { readonly body?: object; readonly headers?: Readonly<Record<string, string>> },
];

const send = ([path, { body, headers = {} } = {}]: Call): Promise<Response> =>
  body === undefined
    ? rig.api.ask(path, attacker.bearer, { headers })
    : rig.api.post(path, body, attacker.bearer, headers);

const lists: readonly string[] = [
  '/api/v1/events',
  '/api/v1/events?direction=backwards&limit=1000',
  '/api/v1/documents/banking/account',
  '/api/v1/jobs',
  '/api/v1/notify/customers/cust_1/notifications',
  '/api/v1/notify/customers/cust_1/contact',
  '/admin/dlq',
  '/admin/outbox',
  '/admin/sagas',
  '/admin/audit',
];

test('lists of the API contain nothing of another tenant', async () => {
  const traces = new RegExp([marker, victim, ...Object.values(ids)].join('|'));
  for (const path of lists) {
    const answer = await send([path]);
    assert.equal(answer.status, 200, path);
    assert.doesNotMatch(await answer.text(), traces, path);
  }
});

/** Statuses of a request that names something of the victim. */
const refusals: ReadonlySet<number> = new Set([403, 404]);

test('requests that name data of another tenant are refused, and change nothing', async () => {
  const { engines } = rig.api.platform;
  const head = await stateOfVictim();
  const event = { events: [{ type: 'order.placed.v1', payload: {} }] };
  const calls: readonly Call[] = [
    [`/api/v1/streams/${stream}`],
    [`/api/v1/streams/${stream}/events`],
    [`/api/v1/streams/${stream}/subscribe`],
    [`/api/v1/streams/${stream}/events`, { body: event }],
    ['/api/v1/streams/$millrace-tokens/events'],
    ['/api/v1/events?tenant=aaa'],
    ['/api/v1/events/subscribe?tenant=aaa'],
    ['/api/v1/documents/banking/account', { headers: foreign }],
    ['/api/v1/documents/banking/account/handler', { headers: foreign }],
    [
      '/api/v1/commands/account.deposit',
      { body: { id: 'handler', payload: { amount: 1 } }, headers: foreign },
    ],
    [
      '/api/v1/commands/account.deposit',
      {
        body: { id: 'handler', payload: { amount: 1 } },
        headers: { 'idempotency-key': 'aaa|banking|account-deposit|x' },
      },
    ],
    ['/api/v1/jobs', { body: { type: 'report-gen', payload: {} }, headers: foreign }],
    [`/api/v1/jobs/${ids.job}`],
    [`/api/v1/jobs/${ids.job}/result`],
    [`/api/v1/jobs/${ids.job}/events`, { body: { name: 'x', payload: {} } }],
    [`/admin/jobs/${ids.job}/cancel`, { body: {} }],
    [`/admin/jobs/${ids.job}/retry`, { body: {} }],
    [`/admin/dlq/${ids.letter}`],
    [`/admin/dlq/${ids.letter}/replay`, { body: {} }],
    [`/admin/dlq/${ids.letter}/discard`, { body: { reason: 'x' } }],
    [`/admin/dlq/${ids.letter}/note`, { body: { notes: 'x' } }],
    [`/admin/outbox/${ids.message}`],
    [`/admin/sagas/${ids.saga}`],
    [`/admin/sagas/${ids.saga}/resume`, { body: {} }],
    [`/admin/traces/${flow}`],
    ['/api/v1/notify/customers/cust_1/notifications', { headers: foreign }],
    ['/api/v1/notify/customers/cust_1/follow?after=start', { headers: foreign }],
    ['/api/v1/notify/broadcasts/follow?after=start', { headers: foreign }],
    ['/api/v1/worker/claim', { body: { worker: 'w', types: { 'report-gen': 1 } } }],
    ['/api/v1/jobs/counts'],
    ['/admin/outbox/counts'],
    ['/admin/tokens'],
    ['/admin/subscriptions'],
    ['/admin/system'],
  ];
  for (const call of calls) {
    const answer = await send(call);
    assert.ok(refusals.has(answer.status), `${call[0]}: ${answer.status}`);
    assert.doesNotMatch(await answer.text(), new RegExp(marker));
  }
  // Bulk actions reach only the caller's tenant.
  const bulk: readonly Call[] = [
    ['/admin/dlq/replay', { body: { all: true } }],
    ['/admin/dlq/discard', { body: { all: true, reason: 'x' } }],
    ['/admin/outbox/replay', { body: { all: true } }],
    ['/admin/jobs/cancel', { body: { all: true } }],
    ['/admin/jobs/retry', { body: { all: true } }],
  ];
  for (const call of bulk) {
    const answer = await send(call);
    const text = await answer.text();
    assert.equal(answer.ok, true, `${call[0]}: ${text}`);
    assert.doesNotMatch(text, /aaa|[1-9]/, call[0]);
  }
  assert.deepEqual(await stateOfVictim(), head);

  async function stateOfVictim(): Promise<unknown> {
    const events = await engines.store.readAll({ filter: { tenant: victim } }).toArray();
    const tasks = await rig.api.platform.tasks();
    return {
      events: events.length,
      job: (await tasks.get(ids.job))?.state,
      letters: (await engines.subscriptions.deadLetters.list({ tenant: victim })).map(
        ({ id, status }) => [id, status],
      ),
      messages: (await engines.outbox?.list({ tenantId: victim }))?.map(({ status }) => status),
      sagas: (await engines.sagas.list({ tenant: victim })).map(({ status }) => status),
    };
  }
});

test('a WebSocket delivers nothing of another tenant', async () => {
  assert.equal(await rig.overSocket(attacker, { stream }), undefined);
  assert.equal(await rig.overSocket(attacker, { tenant: victim }), undefined);
  const seen = (await rig.overSocket(attacker, {})) ?? assert.fail();
  assert.ok(seen.every(({ tenant }) => tenant === 'bbb'));
});

test('streams of another tenant are denied for every method of gRPC', async () => {
  const { grpcClient: client } = rig;
  const options = { credentials: attacker.grpc ?? assert.fail() };
  const denied: Readonly<Record<string, () => Promise<unknown>>> = {
    read: async () => Array.fromAsync(client.readStream(stream, options)),
    append: () =>
      client.appendToStream(stream, [jsonEvent({ type: 'order.placed.v1', data: {} })], options),
    delete: () => client.deleteStream(stream, options),
    tombstone: () => client.tombstoneStream(stream, options),
    metadata: () => client.getStreamMetadata(stream, options),
    'metadata change': () => client.setStreamMetadata(stream, { maxCount: 1 }, options),
    group: () =>
      client.createPersistentSubscriptionToStream(
        stream,
        'thieves',
        persistentSubscriptionToStreamSettingsFromDefaults(),
        options,
      ),
  };
  for (const [name, call] of Object.entries(denied)) {
    await assert.rejects(call, { type: 'access-denied' }, name);
  }
  for await (const { event } of client.readAll(options)) {
    assert.doesNotMatch(JSON.stringify(event?.data), new RegExp(marker));
  }
});

test('customers with the same id in two tenants share no notification', async () => {
  const { api } = rig;
  const path = '/api/v1/notify/customers/cust_1';
  const own = { category: 'info', title: 'own' };
  assert.equal((await api.post(`${path}/notifications`, own, attacker.bearer)).status, 201);
  const answer = await api.ask(`${path}/follow?after=start`, attacker.bearer);
  let text = '';
  for await (const chunk of answer.body ?? assert.fail()) {
    text += Buffer.from(chunk).toString();
    if (text.includes('own')) break;
  }
  assert.doesNotMatch(text, new RegExp(marker));
});

test('a contact of a customer publishes to the topics of its tenant only', async () => {
  const { api } = rig;
  const path = '/api/v1/notify/customers/cust_2';
  const put = (part: string, body: object) =>
    api.ask(`${path}/${part}`, attacker.bearer, {
      method: 'PUT',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
  const info = { enabled: true, channels: ['topic'], breaksQuiet: true };
  const preferences = { timeZone: 'UTC', quietHours: [], categories: { info } };
  assert.equal((await put('preferences', preferences)).status, 200);
  assert.equal((await put('contact', { topic: 'aaa_announcements' })).status, 200);
  await api.post(`${path}/notifications`, { category: 'info', title: 'x' }, attacker.bearer);
  const bus = await api.platform.engines.bus();
  const subjects = async () =>
    (await Array.fromAsync(bus.read('gbe.notify.topic.*'))).map(({ subject }) => subject);
  await until(async () => (await subjects()).length > 0);
  assert.deepEqual(await subjects(), ['gbe.notify.topic.bbb_aaa_announcements']);
});

test('topics reject tokens of a tenant', async () => {
  const headers = { authorization: `Bearer ${attacker.bearer}` };
  for (const [method, path] of [
    ['POST', '/news'],
    ['GET', '/news/json?poll=1'],
    ['GET', '/v1/users'],
  ]) {
    const answer = await fetch(`${rig.topics}${path}`, { method: method ?? '', headers });
    assert.equal(answer.status, 401, `${path}`);
  }
});

test('an erased person of another tenant is not revealed, and keys are not shared', async () => {
  const { api } = rig;
  const subject = 'notify:customer:aaa:cust_9';
  const append = async (identity: Identity, dataSubject: string): Promise<number> => {
    const own = `shop.order.v1-${identity.tenant}-person`;
    const events = [{ type: 'order.placed.v1', payload: { a: 1 }, headers: { dataSubject } }];
    const answer = await api.post(`/api/v1/streams/${own}/events`, { events }, identity.bearer);
    return answer.status;
  };
  const other = (await rig.token(victim)) as Identity;
  assert.equal(await append(other, subject), 201);
  await api.platform.engines.store.forget(subject);
  assert.equal(await append(other, subject), 410);
  for (const name of [subject, 'notify:customer:aaa:unknown', 'jane']) {
    assert.equal(await append(attacker, name), 201, name);
  }
  const { grpcClient: client } = rig;
  const metadata = { dataSubject: subject };
  const event = jsonEvent({ type: 'order.placed.v1', data: {}, metadata });
  const credentials = attacker.grpc ?? assert.fail();
  await client.appendToStream('shop.order.v1-bbb-person', [event], { credentials });
  const events = await api.platform.engines.store.readStream('shop.order.v1-bbb-person').toArray();
  assert.deepEqual(
    events.map(({ headers }) => headers?.['dataSubject']),
    [`bbb:${subject}`, 'bbb:notify:customer:aaa:unknown', 'bbb:jane', `bbb:${subject}`],
  );
});

test('modules refuse tokens for workers, and broadcasts need the scope read', async () => {
  const { api } = rig;
  assert.equal((await api.ask('/vault/v-1', await api.token('work', 'bbb'))).status, 403);
  const path = '/api/v1/notify/broadcasts/follow?after=start';
  for (const scope of ['work', 'append'] as const) {
    const bearer = await api.token(scope);
    assert.equal((await api.ask(path, bearer, { headers: foreign })).status, 403, scope);
  }
});

test('a token is not the person of a JWT with the same name', async () => {
  const { api } = rig;
  const ada = await rig.jwt('bbb', { scope: '' });
  const path = '/api/v1/notify/customers/ada/notifications';
  assert.equal((await api.ask(path, ada.bearer)).status, 200);
  const { secret } = await api.platform.tokens.create({
    name: 'ada',
    tenant: 'bbb',
    scopes: ['use'],
  });
  assert.equal((await api.ask(path, secret)).status, 403);
});

test('deletions over gRPC and changes of topic users are in the audit log', async () => {
  const { api, grpcClient: client } = rig;
  const credentials = attacker.grpc ?? assert.fail();
  const own = 'shop.order.v1-bbb-gone';
  await client.appendToStream(own, [jsonEvent({ type: 'order.placed.v1', data: {} })], {
    credentials,
  });
  await client.tombstoneStream(own, { credentials });
  const admin = await api.token('admin');
  const rule = { username: '*', topic: 'news', permission: 'read-write' };
  const changed = await fetch(`${rig.topics}/v1/users/access`, {
    method: 'PUT',
    body: JSON.stringify(rule),
    headers: { authorization: `Bearer ${admin}` },
  });
  assert.equal(changed.status, 200);
  const { items } = (await (await api.ask('/admin/audit?limit=2', admin)).json()) as {
    readonly items: readonly Readonly<Record<string, unknown>>[];
  };
  assert.deepEqual(
    items.map(({ action, target, outcome }) => [action, target, outcome]),
    [
      ['topics.set-access', '{"username":"*","topic":"news"}', 'done'],
      ['stream.tombstone', own, 'done'],
    ],
  );
});

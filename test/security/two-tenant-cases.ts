// One tenant has data everywhere; the administrator of another one tries everything. One table for every protocol, run on
// several engines.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@kurrent/kurrentdb-client';
import { until } from '../../src/testing/support/server/api-rig.ts';
import type { EngineUrls } from '../../src/platform/index.ts';
import type { Route } from '../../src/platform/modules/route.ts';
import { newEvent } from '../../src/testing/conformance/store/fixture.ts';
import { throwawayCertificate } from '../../src/testing/support/throwaway-certificate.ts';
import { ownRoutes, socketMessages } from '../../tools/scope-reference.ts';
import { openTenantRig, type Identity, type TenantRig } from './tenant-rig.ts';

const victim = 'aaa';
const stream = `shop.order.v1-${victim}-1`;
const flow = 'flow-of-aaa';
const foreign = { 'x-tenant-id': victim };
/** In every payload and title of the victim. */
const marker = 'secret-of-aaa';

/** Ids of the victim's data. */
type VictimIds = Readonly<Record<'job' | 'letter' | 'message' | 'notification' | 'saga', string>>;

type Call = readonly [
  path: string,
  init?: {
    readonly method?: string;
    readonly body?: object;
    readonly headers?: Readonly<Record<string, string>>;
  },
];

const lists: readonly string[] = [
  '/api/v1/events',
  '/api/v1/events?direction=backwards&limit=1000',
  '/api/v1/events/search',
  `/api/v1/events/search?correlationId=${flow}`,
  '/api/v1/documents/banking/account',
  '/api/v1/jobs',
  '/api/v1/notify/customers/cust_1/notifications',
  '/api/v1/notify/customers/cust_1/contact',
  '/admin/dlq',
  '/admin/parked-streams',
  '/admin/failures',
  '/admin/bulk',
  `/admin/resolve/${stream}`,
  `/admin/resolve/${flow}`,
  '/admin/outbox',
  '/admin/sagas',
  '/admin/audit',
  '/api/v1/notify/broadcasts',
  '/api/v1/notify/customers/cust_1/preferences',
];

/** Statuses of a request that names something of the victim; 422: the caller's own customer has no such notification. */
const refusals: ReadonlySet<number> = new Set([403, 404, 422]);

const order = { events: [{ type: 'order.placed.v1', payload: {} }] };
const info = { enabled: true, channels: ['topic'], breaksQuiet: true };
const preferences = { timeZone: 'UTC', quietHours: [], categories: { info } };
const replayOfVictim = { action: 'replay', filter: { tenant: 'aaa' } };
const change = (body: object) => ({ method: 'PUT', body });

/** Requests that name something of the victim. */
const refused = (ids: VictimIds): readonly Call[] => [
  [`/api/v1/streams/${stream}`],
  [`/api/v1/streams/${stream}/events`],
  [`/api/v1/streams/${stream}/subscribe`],
  [`/api/v1/streams/${stream}/events`, { body: order }],
  ['/api/v1/streams/$millrace-tokens/events'],
  ['/api/v1/events?tenant=aaa'],
  ['/api/v1/events/subscribe?tenant=aaa'],
  ['/api/v1/events/search?tenant=aaa'],
  [`/api/v1/events/search?stream=${stream}`],
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
  ['/admin/parked-streams?tenant=aaa'],
  [`/admin/parked-streams/${ids.letter}/events`],
  [`/admin/outbox/${ids.message}`],
  [`/admin/outbox/${ids.message}/attempts`],
  ['/admin/bulk/preview', { body: replayOfVictim }],
  ['/admin/bulk', { body: { ...replayOfVictim, until: new Date().toISOString(), matched: 1 } }],
  [`/admin/bulk/${ids.job}`],
  [`/admin/bulk/${ids.job}/items`],
  [`/admin/bulk/${ids.job}/cancel`, { body: {} }],
  [`/admin/sagas/${ids.saga}`],
  [`/admin/sagas/${ids.saga}/resume`, { body: {} }],
  [`/admin/traces/${flow}`],
  ['/admin/failures?tenant=aaa'],
  ['/admin/failures/0123456789ab'],
  ['/admin/overview'],
  ['/api/v1/notify/customers/cust_1/notifications', { headers: foreign }],
  ['/api/v1/notify/customers/cust_1/follow?after=start', { headers: foreign }],
  ['/api/v1/notify/broadcasts/follow?after=start', { headers: foreign }],
  ['/api/v1/worker/claim', { body: { worker: 'w', types: { 'report-gen': 1 } } }],
  ['/api/v1/jobs/counts'],
  ['/admin/outbox/counts'],
  ['/admin/tokens'],
  ['/admin/subscriptions'],
  ['/admin/system'],
  ['/admin/processes'],
  ['/api/v1/commands/account.review', { body: { id: 'handler', payload: {} }, headers: foreign }],
  [
    '/api/v1/commands/broadcast.publish',
    { body: { payload: { category: 'announcement', title: 'x' } }, headers: foreign },
  ],
  [
    '/api/v1/jobs/bulk',
    { body: { tasks: [{ type: 'report-gen', payload: {} }] }, headers: foreign },
  ],
  ['/api/v1/jobs?tenant=aaa'],
  ['/api/v1/jobs/tail?type=report-gen&tenant=aaa'],
  [`/api/v1/jobs/tail?id=${ids.job}`],
  ['/admin/dlq?tenant=aaa'],
  ['/admin/outbox?tenant=aaa'],
  ['/admin/sagas?tenant=aaa'],
  ['/vault/handler'],
  ['/api/v1/notify/customers/cust_1/preferences', { headers: foreign }],
  ['/api/v1/notify/customers/cust_1/preferences', { ...change(preferences), headers: foreign }],
  ['/api/v1/notify/customers/cust_1/contact', { headers: foreign }],
  ['/api/v1/notify/customers/cust_1/contact', { ...change({ topic: 'x' }), headers: foreign }],
  [
    '/api/v1/notify/customers/cust_1/notifications',
    { body: { category: 'info', title: 'x' }, headers: foreign },
  ],
  [
    `/api/v1/notify/customers/cust_1/notifications/${ids.notification}/acknowledge`,
    { body: {}, headers: foreign },
  ],
  [`/api/v1/notify/customers/cust_1/notifications/${ids.notification}/acknowledge`, { body: {} }],
  ['/api/v1/notify/broadcasts', { headers: foreign }],
  [
    '/api/v1/notify/broadcasts',
    { body: { category: 'announcement', title: 'x' }, headers: foreign },
  ],
];

/** Requests that reach only data of the caller's tenant. */
const bulk = (ids: VictimIds): readonly Call[] => [
  ['/admin/dlq/replay', { body: { all: true } }],
  ['/admin/dlq/discard', { body: { all: true, reason: 'x' } }],
  ['/admin/outbox/replay', { body: { all: true } }],
  ['/admin/outbox/retry', { body: { ids: [ids.message] } }],
  ['/admin/outbox/discard', { body: { ids: [ids.message], reason: 'x' } }],
  ['/admin/jobs/cancel', { body: { all: true } }],
  ['/admin/jobs/retry', { body: { all: true } }],
];
/** Requests that change or show only data of the caller's tenant, which has none with these ids. */
const ownData: readonly Call[] = [
  ['/vault/handler', { body: { amount: 1 } }],
  ['/api/v1/jobs/types'],
];

async function fill(filled: TenantRig): Promise<VictimIds> {
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
  const { notificationId } = await post('/api/v1/notify/customers/cust_1/notifications', {
    category: 'info',
    title: marker,
  });
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
    notification: String(notificationId),
    saga: saga?.stream ?? '',
  };
}

const methodOf = ([, { method, body } = {}]: Call): string =>
  method ?? (body === undefined ? 'GET' : 'POST');

export interface SampleSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SampleSchema[];
  readonly items?: SampleSchema;
  readonly properties?: Readonly<Record<string, SampleSchema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
}

/** A value with the required fields. */
export function sampleOf({
  type,
  properties = {},
  required = [],
  ...schema
}: SampleSchema): unknown {
  const [first] = schema.enum ?? [];
  if (first !== undefined) return first;
  if (schema.anyOf !== undefined) return sampleOf(schema.anyOf[0] ?? {});
  if (type === 'string') return '2026-01-01T00:00:00Z';
  if (type === 'integer' || type === 'number') return schema.minimum ?? 0;
  if (type === 'boolean') return true;
  if (type === 'array') return [sampleOf(schema.items ?? {})];
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
}

const settingsOfAll = persistentSubscriptionToAllSettingsFromDefaults();

/** The first element of a subscription, or its error. */
async function firstOf(subscription: AsyncIterable<unknown>): Promise<unknown> {
  for await (const each of subscription) return each;
  return undefined;
}

export function testTwoTenants(
  openEngines: (opened: AsyncDisposableStack) => Promise<EngineUrls>,
): void {
  const opened = new AsyncDisposableStack();
  let rig: TenantRig;
  let attacker: Identity;
  let ids: VictimIds;

  before(async () => {
    const tls = opened.use(throwawayCertificate());
    rig = opened.use(await openTenantRig(tls, await openEngines(opened)));
    attacker = (await rig.token('bbb')) as Identity;
    ids = await fill(rig);
  });
  after(() => opened.disposeAsync());

  const send = (call: Call): Promise<Response> => {
    const [path, { body, headers = {} } = {}] = call;
    return rig.api.ask(path, attacker.bearer, {
      method: methodOf(call),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json', ...headers },
    });
  };

  async function stateOfVictim(): Promise<unknown> {
    const { engines } = rig.api.platform;
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

  test('lists of the API contain nothing of another tenant', async () => {
    const traces = new RegExp([marker, victim, ...Object.values(ids)].join('|'));
    for (const path of lists) {
      const answer = await send([path]);
      assert.equal(answer.status, 200, path);
      assert.doesNotMatch(await answer.text(), traces, path);
    }
  });

  test('requests that name data of another tenant are refused, and change nothing', async () => {
    const head = await stateOfVictim();
    for (const call of refused(ids)) {
      const answer = await send(call);
      assert.ok(refusals.has(answer.status), `${call[0]}: ${answer.status}`);
      assert.doesNotMatch(await answer.text(), new RegExp(marker));
    }
    // Bulk actions reach only the caller's tenant.
    for (const call of bulk(ids)) {
      const answer = await send(call);
      const text = await answer.text();
      assert.equal(answer.ok, true, `${call[0]}: ${text}`);
      assert.doesNotMatch(text, /aaa|[1-9]/, call[0]);
    }
    assert.deepEqual(await stateOfVictim(), head);
  });

  test('a route that is not in the table refuses credentials of a tenant', async () => {
    const table = [...lists.map((path): Call => [path]), ...refused(ids), ...bulk(ids), ...ownData];
    const routes = ownRoutes(rig.api.server).filter(({ access }) => access !== 'anonymous');
    const isOf = ({ method, path }: Route, call: Call): boolean =>
      methodOf(call) === method &&
      new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(call[0].split('?', 1)[0] ?? '');
    for (const call of table) {
      assert.ok(
        routes.some((route) => isOf(route, call)),
        `no route: ${methodOf(call)} ${call[0]}`,
      );
    }
    const others = routes.filter((route) => !table.some((call) => isOf(route, call)));
    for (const { method, path, body } of others) {
      const given = body === undefined ? {} : { body: sampleOf(body) as object };
      const answer = await send([path.replaceAll(/\{\w+\}/g, 'x'), { method, ...given }]);
      assert.equal(answer.status, 403, `${method} ${path}: ${await answer.text()}`);
    }
    assert.ok(others.length > 30, `${others.length} routes`);
  });

  test('a WebSocket delivers and changes nothing of another tenant', async () => {
    const seen = (await rig.overSocket(attacker, {})) ?? assert.fail();
    assert.ok(seen.every(({ tenant }) => tenant === 'bbb'));
    const cust = { tenant: victim, customerId: 'cust_1' };
    const document = { bc: 'banking', aggregate: 'account' };
    const payload = { amount: 1 };
    const messages: Readonly<Record<string, readonly object[]>> = {
      subscribe: [{ stream }, { tenant: victim }],
      command: [
        { command: 'account.deposit', aggregateId: 'handler', payload, tenant: victim },
        {
          command: 'account.deposit',
          aggregateId: 'handler',
          payload,
          idempotencyKey: 'aaa|banking|account-deposit|x',
        },
      ],
      query: [
        { ...document, tenant: victim },
        { ...document, tenant: victim, documentId: 'handler' },
        { ...document, documentId: 'handler' },
      ],
      'console.watch': [{}],
      'notify.follow': [{ ...cust, after: 'start' }],
      'notify.unfollow': [cust],
      'notify.follow-broadcasts': [{ tenant: victim, after: 'start' }],
      'notify.unfollow-broadcasts': [{ tenant: victim }],
      'notify.acknowledge': [
        { ...cust, notificationId: ids.notification },
        { customerId: 'cust_1', notificationId: ids.notification },
      ],
    };
    const withoutTenant = ['auth', 'unsubscribe', 'bell.hear', 'bell.break', 'console.unwatch'];
    assert.deepEqual(
      socketMessages(rig.api.server)
        .map(({ type }) => type)
        .toSorted(),
      [...withoutTenant, ...Object.keys(messages)].toSorted(),
    );
    const head = await stateOfVictim();
    for (const [type, cases] of Object.entries(messages)) {
      for (const each of cases) {
        const { problem } = await rig.replyTo(attacker, { type, ...each });
        const shown = `${type} ${JSON.stringify(each)}: ${JSON.stringify(problem)}`;
        assert.ok(refusals.has(problem?.status ?? 0), shown);
        assert.doesNotMatch(shown, new RegExp(marker));
      }
    }
    assert.deepEqual(await stateOfVictim(), head);
  });

  test('streams of another tenant are denied for every method of gRPC', async () => {
    const { grpcClient: client } = rig;
    const { username, password } = attacker.grpc ?? assert.fail();
    const options = { credentials: { username, password } };
    const event = jsonEvent({ type: 'order.placed.v1', data: {} });
    const settings = persistentSubscriptionToStreamSettingsFromDefaults();
    // Credentials of the connection select BatchAppend and the second version of the protocol.
    const own = rig.connect(attacker);
    const admin = { credentials: await rig.admin() };
    await client.createPersistentSubscriptionToStream(stream, 'readers', settings, admin);
    const head = await stateOfVictim();
    const denied: Readonly<Record<string, () => Promise<unknown>>> = {
      read: async () => Array.fromAsync(client.readStream(stream, options)),
      'read backwards': async () =>
        Array.fromAsync(
          client.readStream(stream, { ...options, direction: 'backwards', fromRevision: 'end' }),
        ),
      subscribe: () => firstOf(client.subscribeToStream(stream, options)),
      append: () => client.appendToStream(stream, [event], options),
      'batch append': () => own.appendToStream(stream, [event]),
      'append records': () =>
        own.multiStreamAppend([{ streamName: stream, events: [event], expectedState: 'any' }]),
      delete: () => client.deleteStream(stream, options),
      tombstone: () => client.tombstoneStream(stream, options),
      metadata: () => client.getStreamMetadata(stream, options),
      'metadata change': () => client.setStreamMetadata(stream, { maxCount: 1 }, options),
      group: () =>
        client.createPersistentSubscriptionToStream(stream, 'thieves', settings, options),
      'group change': () =>
        client.updatePersistentSubscriptionToStream(stream, 'readers', settings, options),
      'group removal': () =>
        client.deletePersistentSubscriptionToStream(stream, 'readers', options),
      'group information': () =>
        client.getPersistentSubscriptionToStreamInfo(stream, 'readers', options),
      'groups of the stream': () => client.listPersistentSubscriptionsToStream(stream, options),
      'parked messages': () => client.replayParkedMessagesToStream(stream, 'readers', options),
      'group reader': () =>
        firstOf(client.subscribeToPersistentSubscriptionToStream(stream, 'readers', options)),
      'group of all streams': () =>
        client.createPersistentSubscriptionToAll('thieves', settingsOfAll, options),
      'all groups': () => client.listAllPersistentSubscriptions(options),
      'restart of the groups': () => client.restartPersistentSubscriptionSubsystem(options),
      tokens: async () => Array.fromAsync(client.readStream('$millrace-tokens', options)),
    };
    for (const [name, call] of Object.entries(denied)) {
      await assert.rejects(call, { type: 'access-denied' }, name);
    }
    assert.deepEqual(await stateOfVictim(), head);
    const resolved = { ...options, resolveLinkTos: true };
    const shared = {
      $all: () => client.readAll(resolved),
      'the category': () => client.readStream('$ce-shop.order.v1', resolved),
      'the event type': () => client.readStream('$et-order.placed.v1', resolved),
    };
    await client.appendToStream('shop.order.v1-bbb-own', [event], options);
    for (const [name, read] of Object.entries(shared)) {
      const found = JSON.stringify(
        await Array.fromAsync(read(), ({ event: seen }) => [seen?.streamId, seen?.data]),
      );
      assert.match(found, /shop\.order\.v1-bbb-own/, name);
      assert.doesNotMatch(found, new RegExp(`${marker}|${victim}`), name);
    }
  });

  test('the stored tenant of a stream counts, although its name fits the tenant of the caller', async () => {
    // As a tenant wrote it that is in no directory any more.
    const theirs = 'shop.order.v1-bbb-za-1';
    const aggregate = { bc: 'shop', type: 'order', id: '1' };
    const event = newEvent({ type: 'order.placed.v1', tenant: 'bbb-za', aggregate });
    await rig.api.platform.engines.store.append(theirs, [event]);
    for (const [name, read] of Object.entries(rig.readers)) {
      assert.equal(await read(attacker, theirs), undefined, name);
    }
    for (const [name, write] of Object.entries(rig.writers)) {
      assert.equal(await write(attacker, theirs), false, name);
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
    const events = await api.platform.engines.store
      .readStream('shop.order.v1-bbb-person')
      .toArray();
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
    const changes: readonly (readonly [method: string, path: string, body: object])[] = [
      ['POST', '/v1/users', { username: 'ann', password: 'the password of ann' }],
      ['PUT', '/v1/users/access', { username: '*', topic: 'news', permission: 'read-write' }],
      ['DELETE', '/v1/users', { username: 'ann' }],
    ];
    for (const [method, path, body] of changes) {
      const changed = await fetch(`${rig.topics}${path}`, {
        method,
        body: JSON.stringify(body),
        headers: { authorization: `Bearer ${admin}` },
      });
      assert.equal(changed.status, 200, `${method} ${path}: ${await changed.text()}`);
    }
    const { items } = (await (await api.ask('/admin/audit?limit=4', admin)).json()) as {
      readonly items: readonly Readonly<Record<string, unknown>>[];
    };
    assert.doesNotMatch(JSON.stringify(items), /the password/);
    assert.deepEqual(
      items.map(({ action, target, outcome }) => [action, target, outcome]),
      [
        ['topics.remove-user', '{"username":"ann"}', 'done'],
        ['topics.set-access', '{"username":"*","topic":"news"}', 'done'],
        ['topics.add-user', '{"username":"ann"}', 'done'],
        ['stream.tombstone', own, 'done'],
      ],
    );
  });
}

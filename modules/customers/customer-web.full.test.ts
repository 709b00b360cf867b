import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiCaller, eventually } from 'millrace/testing';
import { customerSubject } from './customer-contact.ts';
import { customerLimits } from './customer-limits.ts';
import { customerRig } from './testing/customer-rig.ts';

const base = '/api/v1/notify/customers/cust_1';
const hello = { category: 'info', title: 'Hello', body: 'How are you?' };

test('a customer gets a notification over the WebSocket, lists it and acknowledges it', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const me = await rig.caller('cust_1', ['use']);
  using screen = me.connect();
  await screen.receive('ready');
  screen.send({ type: 'notify.follow', customerId: 'cust_1' });
  await screen.receive('notify.following');
  const response = await shop.ask('POST', `${base}/notifications`, hello);
  assert.deepEqual([response.status, response.body['outcome']], [201, 'delivered']);
  const { notificationId } = response.body;
  const { type: _type, at, ...received } = await screen.receive('notify.notification');
  assert.deepEqual(received, {
    customerId: 'cust_1',
    position: '1',
    notificationId,
    count: 1,
    reminder: 0,
    ...hello,
  });
  assert.ok(typeof at === 'string');
  screen.send({ type: 'notify.acknowledge', customerId: 'cust_1', notificationId });
  const acknowledged = await screen.receive('notify.acknowledged');
  assert.deepEqual(
    [acknowledged['by'], acknowledged['notificationId']],
    ['cust_1', notificationId],
  );
  const list = async () =>
    (await me.ask<{ items: Record<string, unknown>[] }>('GET', `${base}/notifications`)).body.items;
  await eventually(async () => (await list())[0]?.['status'] === 'acknowledged');
  const [document] = await list();
  assert.deepEqual(
    [document?.['title'], document?.['acknowledgedBy'], document?.['count']],
    ['Hello', 'cust_1', 1],
  );
  const { body } = await me.ask('GET', `${base}/notifications?open=true`);
  assert.deepEqual(body, { items: [] });
});

test('following by server-sent events continues after the last seen position', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  for (const title of ['one', 'two', 'three']) {
    await shop.ask('POST', `${base}/notifications`, { category: 'info', title });
  }
  const all = await shop.follow(`${base}/follow?after=start`, 3);
  assert.deepEqual(
    all.map(({ event, data }) => [event, data['title']]),
    [
      ['notification', 'one'],
      ['notification', 'two'],
      ['notification', 'three'],
    ],
  );
  const rest = await shop.follow(`${base}/follow?after=${all[0]?.id}`, 2);
  assert.deepEqual(rest, all.slice(1));
});

test('a repeat with the same key is the same notification; another customer gets another one', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append']);
  const send = (customer: string) =>
    shop.ask('POST', `/api/v1/notify/customers/${customer}/notifications`, hello, {
      'idempotency-key': 'order-7',
    });
  const [first, again, other] = [await send('cust_1'), await send('cust_1'), await send('cust_2')];
  assert.deepEqual(again.body, first.body);
  assert.notEqual(other.body['notificationId'], first.body['notificationId']);
  assert.equal(other.body['outcome'], 'delivered');
});

test('preferences apply, and invalid ones are rejected with a reason', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const off = { enabled: false, channels: [], breaksQuiet: false };
  const preferences = { timeZone: 'Europe/Berlin', quietHours: [], categories: { info: off } };
  assert.equal((await shop.ask('PUT', `${base}/preferences`, preferences)).status, 200);
  assert.deepEqual((await shop.ask('GET', `${base}/preferences`)).body, preferences);
  const response = await shop.ask('POST', `${base}/notifications`, hello);
  assert.equal(response.body['outcome'], 'suppressed');
  const mars = await shop.ask('PUT', `${base}/preferences`, { ...preferences, timeZone: 'Mars/X' });
  assert.deepEqual(
    [mars.status, (mars.body['details'] as { reason?: string }).reason],
    [422, 'time-zone-unknown'],
  );
  const unknown = await shop.ask('POST', `${base}/notifications/nope/acknowledge`);
  assert.equal((unknown.body['details'] as { reason?: string }).reason, 'notification-unknown');
  for (const body of [
    { ...hello, category: 'digest' },
    { ...hello, category: 'maintenance' },
    { ...hello, title: '' },
    { ...hello, more: 1 },
    { category: 'info' },
  ]) {
    assert.equal((await shop.ask('POST', `${base}/notifications`, body)).status, 400);
  }
  assert.equal(
    (await shop.ask('POST', '/api/v1/notify/customers/a.b/notifications', hello)).status,
    400,
  );
});

test('scopes, ownership and tenant limit the actions of a caller', async () => {
  await using rig = await customerRig();
  const writer = await rig.caller('writer', ['append']);
  const reader = await rig.caller('reader', ['read']);
  const me = await rig.caller('cust_1', ['use']);
  const other = await rig.caller('cust_2', ['use']);
  const elsewhere = await rig.caller('cust_1-other', ['append', 'read'], 'other');
  await writer.ask('POST', `${base}/notifications`, hello);
  const statuses = async (method: string, path: string, body?: unknown) =>
    Promise.all(
      [writer, reader, me, other].map(async (each) => (await each.ask(method, path, body)).status),
    );
  const preferences = { timeZone: 'UTC', quietHours: [], categories: {} };
  assert.deepEqual(await statuses('POST', `${base}/notifications`, hello), [201, 403, 403, 403]);
  assert.deepEqual(await statuses('GET', `${base}/notifications`), [403, 200, 200, 403]);
  assert.deepEqual(await statuses('PUT', `${base}/preferences`, preferences), [200, 403, 200, 403]);
  assert.deepEqual(await statuses('GET', `${base}/contact`), [403, 200, 200, 403]);
  assert.deepEqual(await statuses('PUT', `${base}/contact`, {}), [200, 403, 200, 403]);
  const broadcast = { category: 'announcement', title: 'News' };
  const path = '/api/v1/notify/broadcasts';
  assert.deepEqual(await statuses('POST', path, broadcast), [201, 403, 403, 403]);
  assert.deepEqual(await statuses('GET', path), [403, 200, 200, 200]);
  const { body } = await elsewhere.ask('GET', `${base}/notifications`);
  assert.deepEqual(body, { items: [] });
  const response = await elsewhere.ask('GET', `${base}/notifications`, undefined, {
    'x-tenant-id': 'core',
  });
  assert.equal(response.status, 403);
  using screen = other.connect();
  await screen.receive('ready');
  screen.send({ type: 'notify.follow', id: 'f', customerId: 'cust_1' });
  const problem = await screen.receive('problem');
  assert.equal((problem['problem'] as { code?: string }).code, 'NOT_ALLOWED');
});

test('a broadcast respects the preferences of each customer, and reaches all followers of broadcasts', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const customers = Array.from({ length: 120 }, (_, index) => `c-${index}`);
  for (const customer of customers) {
    await shop.ask('POST', `/api/v1/notify/customers/${customer}/notifications`, hello);
  }
  const off = { enabled: false, channels: [], breaksQuiet: false };
  await shop.ask('PUT', '/api/v1/notify/customers/c-7/preferences', {
    timeZone: 'UTC',
    quietHours: [],
    categories: { maintenance: off },
  });
  using screen = shop.connect();
  await screen.receive('ready');
  screen.send({ type: 'notify.follow-broadcasts' });
  await screen.receive('notify.following');
  const sent = await shop.ask('POST', '/api/v1/notify/broadcasts', {
    category: 'maintenance',
    title: 'Sunday, 2 to 3',
  });
  const heard = await screen.receive('notify.broadcast');
  assert.equal(heard['broadcastId'], sent.body['broadcastId']);
  const broadcasts = async () =>
    (await shop.ask<{ items: Record<string, unknown>[] }>('GET', '/api/v1/notify/broadcasts')).body
      .items;
  await eventually(async () => (await broadcasts())[0]?.['status'] === 'completed');
  assert.equal((await broadcasts())[0]?.['reached'], customers.length);
  const events = await Array.fromAsync(rig.platform.engines.store.readAll());
  const deliveries = events.filter(
    ({ type, payload }) =>
      type === 'customer-inbox.delivered.v1' &&
      (payload as { notice: { category: string } }).notice.category === 'maintenance',
  );
  const others = customers.filter((each) => each !== 'c-7');
  assert.deepEqual(deliveries.map(({ aggregate }) => aggregate.id).toSorted(), others.toSorted());
});

test('the bus gets each delivery once, on the subjects of customers, topics and broadcasts', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const on = { enabled: true, channels: ['socket', 'topic'], breaksQuiet: false };
  await shop.ask('PUT', `${base}/preferences`, {
    timeZone: 'UTC',
    quietHours: [],
    categories: { alert: on },
  });
  await shop.ask('PUT', `${base}/contact`, { topic: 'server-alerts' });
  const response = await shop.ask('POST', `${base}/notifications`, {
    category: 'alert',
    title: 'Fire',
  });
  await shop.ask('POST', `${base}/notifications`, hello);
  await shop.ask('POST', '/api/v1/notify/broadcasts', { category: 'announcement', title: 'News' });
  const bus = await rig.platform.engines.bus();
  const read = (pattern: string) => Array.fromAsync(bus.read(pattern));
  await eventually(async () => (await read('gbe.notify.>')).length === 4);
  const [alert] = await read('gbe.notify.customer.cust_1.alert');
  assert.deepEqual([alert?.id, alert?.tenant], [response.body['notificationId'], 'core']);
  assert.equal((alert?.payload as { title?: string } | undefined)?.title, 'Fire');
  const [topic] = await read('gbe.notify.topic.core_server-alerts');
  assert.deepEqual(topic?.payload, {
    title: 'Fire',
    message: 'Fire',
    priority: 5,
    tags: ['alert'],
  });
  assert.equal((await read('gbe.notify.customer.cust_1.info')).length, 1);
  assert.equal((await read('gbe.notify.broadcast.announcement')).length, 1);
});

test('a contact is encrypted, and erased with the key of its customer', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const { store } = rig.platform.engines;
  const contact = { email: 'ada@example.org' };
  await shop.ask('PUT', `${base}/contact`, contact);
  const changed = { email: 'lovelace@example.org' };
  // The command encrypts by its aggregate, also without the route.
  const command = { type: 'customer-contact.change', payload: changed };
  await rig.platform.handle({ tenant: 'core', id: 'cust_1', command });
  assert.deepEqual((await shop.ask('GET', `${base}/contact`)).body, changed);
  await store.forget(customerSubject('core', 'cust_1'));
  assert.deepEqual((await shop.ask('GET', `${base}/contact`)).body, {});
  const events = await Array.fromAsync(store.readAll());
  assert.equal(JSON.stringify(events).includes('example.org'), false);
  // A returning customer gets a new id.
  const again = await shop.ask('PUT', `${base}/contact`, contact);
  assert.deepEqual([again.status, again.body['code']], [410, 'SUBJECT_FORGOTTEN']);
});

test('a follower can distinguish customers with the same id in two tenants', async () => {
  await using rig = await customerRig();
  const { secret } = await rig.platform.tokens.create({ name: 'all', scopes: ['admin'] });
  const all = apiCaller(rig.url, secret);
  using screen = all.connect();
  await screen.receive('ready');
  for (const tenant of ['core', 'other']) {
    screen.send({ type: 'notify.follow', customerId: 'cust_1', tenant });
    await screen.receive('notify.following', (each) => each['tenant'] === tenant);
  }
  for (const tenant of ['core', 'other']) {
    const body = { category: 'info', title: `of ${tenant}` };
    await all.ask('POST', `${base}/notifications`, body, { 'x-tenant-id': tenant });
    const received = await screen.receive(
      'notify.notification',
      (each) => each['tenant'] === tenant,
    );
    assert.deepEqual([received['title'], received['customerId']], [`of ${tenant}`, 'cust_1']);
  }
  screen.send({ type: 'notify.unfollow', customerId: 'cust_1', tenant: 'core' });
  const ended = await screen.receive('notify.unfollowed');
  assert.equal(ended['tenant'], 'core');
});

test('a notification that the inbox no longer remembers can be acknowledged from the list', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const { notificationId } = (await shop.ask('POST', `${base}/notifications`, hello)).body;
  const title = 'Newer';
  const command = (index: number) => ({
    type: 'customer-inbox.notify',
    payload: { notificationId: `n-${index}`, category: 'info', title },
  });
  for (let index = 0; index < customerLimits.recentMax; index += 1) {
    await rig.platform.handle({ tenant: 'core', id: 'cust_1', command: command(index) });
  }
  const open = async () =>
    (
      await shop.ask<{ items: Record<string, unknown>[] }>(
        'GET',
        `${base}/notifications?open=true&limit=200`,
      )
    ).body.items;
  await eventually(async () => (await open())[0]?.['notificationId'] === 'n-499');
  const path = `${base}/notifications/${String(notificationId)}/acknowledge`;
  assert.equal((await shop.ask('POST', path)).status, 204);
  assert.equal((await shop.ask('POST', path)).status, 204);
  const events = await Array.fromAsync(rig.platform.engines.store.readAll());
  const done = events.filter(({ type }) => type === 'customer-inbox.acknowledged.v1');
  assert.equal(done.length, 1);
});

test('an empty key is rejected, and a merged notification names the one it is part of', async () => {
  await using rig = await customerRig();
  const shop = await rig.caller('shop', ['append', 'read']);
  const empty = await shop.ask('POST', `${base}/notifications`, hello, { 'idempotency-key': '' });
  assert.deepEqual([empty.status, empty.body['code']], [400, 'REQUEST_INVALID']);
  const keyed = { ...hello, key: 'greeting' };
  const [first, second] = [
    await shop.ask('POST', `${base}/notifications`, keyed),
    await shop.ask('POST', `${base}/notifications`, keyed),
  ];
  assert.equal(second.body['partOf'], first.body['notificationId']);
  const path = `${base}/notifications/${String(second.body['notificationId'])}/acknowledge`;
  assert.equal((await shop.ask('POST', path)).status, 204);
  const list = async () =>
    (await shop.ask<{ items: Record<string, unknown>[] }>('GET', `${base}/notifications`)).body
      .items;
  await eventually(async () => (await list())[0]?.['status'] === 'acknowledged');
  const windowMs = 60_000;
  const digest = { ...hello, digest: { key: 'sales', windowMs } };
  const sent = await shop.ask('POST', `${base}/notifications`, digest);
  const item = `${base}/notifications/${String(sent.body['notificationId'])}/acknowledge`;
  const rejected = await shop.ask('POST', item);
  assert.equal((rejected.body['details'] as { reason?: string }).reason, 'notification-in-digest');
  await eventually(async () => (await list())[0]?.['notificationId'] === sent.body['partOf']);
});

test('the API reference lists the headers of the routes', async () => {
  await using rig = await customerRig();
  const admin = await rig.caller('ops', ['admin']);
  interface Shown {
    readonly paths: Readonly<
      Record<
        string,
        Readonly<Record<string, { readonly parameters?: readonly { name: string }[] }>>
      >
    >;
  }
  const { body } = await admin.ask<Shown>('GET', '/openapi.json');
  const shown = (method: string, path: string): readonly string[] =>
    (body.paths[`/api/v1/notify/${path}`]?.[method]?.parameters ?? []).map(({ name }) => name);
  const customer = 'customers/{customerId}';
  assert.ok(shown('post', `${customer}/notifications`).includes('Idempotency-Key'));
  assert.ok(shown('post', 'broadcasts').includes('Idempotency-Key'));
  assert.ok(shown('put', `${customer}/preferences`).includes('traceparent'));
  assert.ok(shown('get', `${customer}/follow`).includes('Last-Event-ID'));
  assert.ok(shown('get', 'broadcasts/follow').includes('Last-Event-ID'));
});

// An id leads to what it belongs to, for those who may see that.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createEnvelope } from '../../contracts/index.ts';
import { systemClock } from '../../foundation/index.ts';
import { Terminal } from '../../subscriptions/index.ts';
import { body, openApi, until, type Api } from '../../testing/support/server/api-rig.ts';

interface Resolved {
  readonly items: readonly {
    readonly kind: string;
    readonly id: string;
    readonly stream?: string;
    readonly revision?: number;
    readonly correlationId?: string;
    readonly fingerprint?: string;
  }[];
  readonly eventsSearched: number;
  readonly sagasSearched: number;
}

const resolve = async (api: Api, id: string, token: string): Promise<Resolved> =>
  body(await api.ask(`/admin/resolve/${encodeURIComponent(id)}`, token));

const kindsOf = async (api: Api, id: string, token: string): Promise<readonly string[]> =>
  (await resolve(api, id, token)).items.map(({ kind }) => kind);

test('an id is found as what it is, within the tenant and the scope of the caller', async () => {
  await using api = await openApi();
  await api.fail('core', 'flow-1');
  const { subscriptions, outbox, sagas, store } = api.platform.engines;
  const [letter] = await subscriptions.deadLetters.list({});
  const [message] = (await outbox?.list({ status: 'DEAD' })) ?? [];
  const [event] = await store.readAll({ limit: 1 }).toArray();
  const [saga] = await sagas.list({ status: 'parked' });
  const job = await api.post(
    '/api/v1/jobs',
    { type: 'report-gen', payload: {} },
    await api.token('append', 'core'),
  );
  const { id: jobId } = await body<{ id: string }>(job);
  const { token } = await api.platform.tokens.create({ name: 'shop-key', scopes: ['read'] });
  const groups = await body<{ items: { fingerprint: string; source: string }[] }>(
    await api.ask('/admin/failures', await api.token('read')),
  );
  const fingerprint = groups.items.find(({ source }) => source === 'delivery')?.fingerprint ?? '';
  const reader = await api.token('read');
  const admin = await api.token('admin');
  const ids = [
    ['flow-1', 'trace'],
    [event?.stream, 'stream'],
    [event?.eventId, 'event'],
    [letter?.id, 'dead-letter'],
    [message?.id, 'delivery'],
    [saga?.key, 'saga'],
    [fingerprint, 'failure'],
    [jobId, 'job'],
    ['sub:banking:alarm:v1', 'subscription'],
  ] as const;
  const other = await api.token('admin', 'other');
  for (const [id = '', kind] of ids) {
    assert.deepEqual(await kindsOf(api, id, reader), [kind], id);
    assert.deepEqual(await kindsOf(api, id, other), [], id);
  }
  const [found] = (await resolve(api, saga?.key ?? '', reader)).items;
  assert.deepEqual([found?.stream, found?.correlationId], [saga?.stream, 'flow-1']);
  for (const id of [token.id, token.name]) {
    assert.deepEqual(await kindsOf(api, id, admin), ['token']);
    // Only administrators of all tenants may list tokens.
    for (const secret of [reader, other]) assert.deepEqual(await kindsOf(api, id, secret), []);
  }
  const { items, eventsSearched, sagasSearched } = await resolve(api, 'nothing', reader);
  assert.equal(items.length, 0);
  assert.ok(eventsSearched > 3);
  assert.equal(sagasSearched, 3);
});

test('a dead letter of the bus is found by its group and sequence, for all tenants only', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-resolve-'));
  try {
    const bus = `sqlite:${join(folder, 'bus.db')}`;
    await using api = await openApi({}, { store: 'memory:', bus });
    const messages = await api.platform.engines.bus();
    const definition = { group: 'mails', subject: 'gbe.notify.topic.a' };
    await using consumer = await messages.consume(definition, () =>
      Promise.reject(new Terminal('no route')),
    );
    for (const payload of [1, 2]) await messages.publish({ subject: definition.subject, payload });
    await until(async () => (await messages.deadLetters('mails')).length === 2);
    const [, second] = await messages.deadLetters('mails');
    const id = `mails/${second?.sequence}`;
    const { items } = await resolve(api, id, await api.token('read'));
    assert.deepEqual(
      items.map((each) => [each.kind, each.id, each.fingerprint?.length]),
      [['bus-dead-letter', id, 12]],
    );
    assert.deepEqual(await kindsOf(api, id, await api.token('admin', 'core')), []);
    assert.deepEqual(await kindsOf(api, 'mails/never', await api.token('read')), []);
    await consumer.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('an event is found at any age by its flow or its dead letter, else among the newest', async () => {
  // The search also ends after some time, which must not pass here.
  const nowMs = Date.now();
  const clock = { ...systemClock, now: () => nowMs };
  await using api = await openApi({}, { store: 'memory:' }, [], { clock });
  const { store, subscriptions } = api.platform.engines;
  const context = { tenant: 'core', aggregate: { bc: 'shop', type: 'order', id: '1' } };
  const first = createEnvelope({ type: 'order.placed.v1', payload: {} }, context);
  const second = createEnvelope(
    { type: 'order.paid.v1', payload: {} },
    { ...context, correlationId: first.eventId },
  );
  await store.append('shop.order.v1-core-1', [first, second]);
  await api.fail('core', 'flow-1');
  const [letter] = await subscriptions.deadLetters.list({});
  for (let at = 0; at < 20; at += 1) {
    const events = Array.from({ length: 1_000 }, () =>
      createEnvelope(
        { type: 'order.changed.v1', payload: {} },
        { ...context, correlationId: 'many' },
      ),
    );
    await store.append('shop.order.v1-core-2', events);
  }
  const reader = await api.token('read');
  const flow = await resolve(api, first.eventId, reader);
  assert.deepEqual(
    flow.items.map(({ kind, revision }) => [kind, revision]),
    [
      ['trace', undefined],
      ['event', 0],
    ],
  );
  assert.equal(flow.eventsSearched, 0);
  const failed = await resolve(api, letter?.eventId ?? '', reader);
  assert.deepEqual(
    failed.items.map(({ kind, stream }) => [kind, stream]),
    [['event', letter?.stream]],
  );
  assert.equal(failed.eventsSearched, 0);
  const old = await resolve(api, second.eventId, reader);
  assert.deepEqual([old.items, old.eventsSearched], [[], 20_000]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../testing/assertions.ts';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { createOutboxDispatcher } from './outbox-dispatcher.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import { startOutboxProjector, type IntegrationEventMapper } from './outbox-projector.ts';

const stream = 'banking.account.v1-core-a1';
const name = 'sub:banking:outbox:v1';

const toWebhook: IntegrationEventMapper = {
  map: ({ type, aggregate }) => ({
    integrationType: 'webhook:partner-x',
    eventType: type,
    payload: { accountId: aggregate.id },
  }),
};

test('each event becomes a row that carries its origin, its tenant and its idempotency key', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  const event = newEvent({ user: { id: 'u1', email: 'a@b.example' } });
  await db.store.append(stream, [event]);
  await using runner = await startOutboxProjector(
    { ...db, outbox: ledger },
    { name, mapper: toWebhook },
  );
  await runner.whenCaughtUp();
  const [message] = await ledger.list({});
  assert.equal(message?.sourceStreamId, stream);
  assert.equal(message.sourceEventId, event.eventId);
  assert.equal(message.tenantId, event.tenant);
  assert.equal(message.correlationId, event.correlationId);
  assert.equal(message.userId, 'u1');
  assert.equal(message.headers?.['idempotencyKey'], event.eventId);
  assert.equal(message.eventType, event.type);
});

test('an event without a tenant becomes a row without one, and the mapper may set tenant, user, correlation and due time', async () => {
  await using db = openMemory({ names: 'open' });
  const ledger = openMemory().outbox;
  const events = [newEvent({ tenant: '' }), newEvent({ tenant: '' })];
  await db.store.append('orders', events);
  const dueAt = new Date('2030-01-01T00:00:00.000Z');
  const mapper: IntegrationEventMapper = {
    map: ({ type, eventId }) => ({
      integrationType: 'webhook:partner-x',
      eventType: type,
      payload: {},
      ...(eventId === events[1]?.eventId
        ? {
            tenantId: 'demo',
            userId: 'u9',
            correlationId: 'flow-9',
            dueAt,
            headers: { idempotencyKey: 'k9' },
          }
        : {}),
    }),
  };
  await using runner = await startOutboxProjector({ ...db, outbox: ledger }, { name, mapper });
  await runner.whenCaughtUp();
  const messages = await ledger.list({}, { oldestFirst: true });
  const rows = messages.map(({ tenantId, userId, correlationId, headers }) => ({
    tenantId,
    userId,
    correlationId,
    key: headers?.['idempotencyKey'],
  }));
  assert.deepEqual(rows, [
    {
      tenantId: undefined,
      userId: undefined,
      correlationId: events[0]?.correlationId,
      key: events[0]?.eventId,
    },
    { tenantId: 'demo', userId: 'u9', correlationId: 'flow-9', key: 'k9' },
  ]);
  assert.deepEqual(messages[1]?.dueAt, dueAt);
});

test('one event goes to several destinations, or to none', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  const events = [newEvent(), newEvent(), newEvent()];
  await db.store.append(stream, events);
  const mapper: IntegrationEventMapper = {
    map: ({ eventId, type }) => {
      if (eventId === events[0]?.eventId) return undefined;
      if (eventId === events[1]?.eventId) return null;
      return ['kafka:payments', 'webhook:x'].map((integrationType) => ({
        integrationType,
        eventType: type,
        payload: {},
      }));
    },
  };
  await using runner = await startOutboxProjector({ ...db, outbox: ledger }, { name, mapper });
  await runner.whenCaughtUp();
  const rows = await ledger.list({}, { oldestFirst: true });
  assert.deepEqual(
    rows.map(({ integrationType }) => integrationType),
    ['kafka:payments', 'webhook:x'],
  );
});

test('events that are processed again after a crash are reported as duplicates', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  await db.store.append(stream, [newEvent(), newEvent()]);
  const phases: string[] = [];
  const note = (fields: object): void => {
    if ('phase' in fields) phases.push(String(fields.phase));
  };
  const observer: Observer = { log: { debug: note, info: note, warn: note, error: note } };
  for (const version of [1, 2]) {
    // A projector with another name has no checkpoint, so it gets the same events.
    const again = { name: `sub:banking:outbox:v${version}`, mapper: toWebhook };
    await using runner = await startOutboxProjector({ ...db, outbox: ledger }, again, { observer });
    await runner.whenCaughtUp();
  }
  assert.equal((await ledger.list({})).length, 2);
  assert.equal(phases.filter((phase) => phase === 'SUCCESS').length, 2);
  assert.equal(phases.filter((phase) => phase === 'DUPLICATE').length, 2);
});

test('during an outage of the ledger the checkpoint does not move, and no message is lost or a duplicate', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  let isAway = true;
  let calls = 0;
  const flaky: OutboxLedger<never> = {
    ...ledger,
    async enqueueMany(items) {
      calls += 1;
      if (isAway) throw new MillraceError('STORE_UNAVAILABLE', 'away');
      return ledger.enqueueMany(items);
    },
  };
  await db.store.append(stream, [newEvent(), newEvent(), newEvent()]);
  const retry = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 2 };
  const definition = { name, mapper: toWebhook, retry };
  await using runner = await startOutboxProjector({ ...db, outbox: flaky }, definition);
  await eventually('it has tried more often than any policy allows', async () => calls > 10);
  assert.deepEqual(await db.subscriptions.deadLetters.list({}), []);
  isAway = false;
  await runner.whenCaughtUp();
  assert.equal((await ledger.list({})).length, 3);
});

test('a message that the ledger rejects makes its event a dead letter, and other events continue', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  const [good, bad, ugly] = [newEvent(), newEvent(), newEvent()];
  for (const [at, event] of [good, bad, ugly].entries()) {
    await db.store.append(`banking.account.v1-core-b${at}`, [event]);
  }
  const mapper: IntegrationEventMapper = {
    map({ eventId, type }) {
      if (eventId === ugly.eventId) throw new Error('cannot map');
      const integrationType = eventId === bad.eventId ? 'x'.repeat(121) : 'webhook:x';
      return { integrationType, eventType: type, payload: {} };
    },
  };
  await using runner = await startOutboxProjector({ ...db, outbox: ledger }, { name, mapper });
  await runner.whenCaughtUp();
  const letters = await db.subscriptions.deadLetters.list({});
  assert.deepEqual(
    new Set(letters.map(({ eventId }) => eventId)),
    new Set([bad.eventId, ugly.eventId]),
  );
  assert.deepEqual(
    letters.map(({ attempts }) => attempts),
    [1, 1],
  );
  const [message, ...more] = await ledger.list({});
  assert.equal(message?.sourceEventId, good.eventId);
  assert.deepEqual(more, []);
});

test('forgetting a person erases messages of events that their stream hides', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  const headers = { dataSubject: 'zelda' };
  const payload = { name: 'Zelda' };
  const mapper: IntegrationEventMapper = {
    map: ({ type }) => ({ integrationType: 'webhook:x', eventType: type, payload }),
  };
  const filter = { typePrefixes: [newEvent().type] };
  const roles = { ...db, outbox: ledger };
  await using runner = await startOutboxProjector(roles, { name, mapper, filter });
  const hide: readonly ((of: string) => Promise<unknown>)[] = [
    (of) => db.store.setStreamMetadata(of, { maxCount: 1 }),
    (of) => db.store.setStreamMetadata(of, { truncateBefore: 2 }),
    (of) => db.store.deleteStream(of),
    (of) => db.store.tombstoneStream(of),
  ];
  for (const [at, hideEvents] of hide.entries()) {
    const of = `${stream}-${at}`;
    await db.store.append(of, [
      newEvent({ payload, headers }),
      newEvent({ type: 'account.noted.v1' }),
    ]);
    await runner.whenCaughtUp();
    await hideEvents(of);
  }
  assert.equal((await ledger.list({})).length, hide.length);
  await db.store.forget('zelda');
  await runner.waitFor(await db.store.head());
  const left = await ledger.list({});
  assert.equal(left.length, hide.length);
  assert.doesNotMatch(JSON.stringify(left), /Zelda/);
});

test('forgetting a person erases the messages that were made from their events', async () => {
  await using db = openMemory();
  const ledger = openMemory().outbox;
  const headers = { dataSubject: 'zelda' };
  const personal = newEvent({ payload: { name: 'Zelda' }, headers });
  const other = newEvent({ payload: { name: 'Link' } });
  await db.store.append(stream, [personal, other]);
  const mapper: IntegrationEventMapper = {
    map: ({ type, payload }) => ({
      integrationType: 'webhook:x',
      eventType: type,
      payload: payload as Record<string, unknown>,
    }),
  };
  const filter = { typePrefixes: [newEvent().type] };
  const roles = { ...db, outbox: ledger };
  await using runner = await startOutboxProjector(roles, { name, mapper, filter });
  await runner.whenCaughtUp();
  await db.store.forget('zelda');
  await runner.waitFor(await db.store.head());
  const [second, first] = await ledger.list({});
  assert.equal(JSON.stringify(first).includes('Zelda'), false);
  assert.deepEqual(second?.payload, other.payload);
  const sent: unknown[] = [];
  await using dispatcher = createOutboxDispatcher({
    ledger,
    deliver: async ({ payload }) => void sent.push(payload),
  });
  await dispatcher.start();
  await eventually(async () => (await ledger.counts()).DEAD === 1 && sent.length === 1);
  assert.deepEqual(sent, [other.payload]);
});

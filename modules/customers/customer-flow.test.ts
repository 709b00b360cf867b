import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildStreamName, createEnvelope, createSubjects, type NewEvent } from 'millrace/contracts';
import type { DeliveryMessage } from 'millrace/delivery';
import { idFromKey, MillraceError } from 'millrace/foundation';
import type { IntegrationMessage } from 'millrace/outbox';
import { parsePosition, type RecordedEvent } from 'millrace/store';
import { given, givenReactor, givenSaga } from 'millrace/testing';
import {
  advanceBroadcast,
  broadcast,
  broadcastAdvanced,
  broadcastCompleted,
  broadcastFanOut,
  broadcastPublished,
  publishBroadcast,
} from './broadcast.ts';
import { messagesOf } from './customer-bus.ts';
import { customerContact } from './customer-contact.ts';
import {
  acknowledgeNotification,
  changeContact,
  contactChanged,
  inboxAcknowledged,
  inboxDelivered,
  inboxEscalated,
  inboxReminded,
  notifyCustomer,
  wakeInbox,
  wakeSet,
} from './customer-events.ts';
import { newsOf } from './customer-notifier.ts';
import { composeNotificationMail, customerMails, customerOutbox } from './customer-outbox.ts';
import { customerClock, customerEscalation } from './customer-reactions.ts';
import type { Channel } from './customer-schemas.ts';

/** The time of `given`, `givenReactor` and `givenSaga`. */
const givenNowMs = Date.UTC(2025, 8, 30, 10);
const at = new Date(givenNowMs).toISOString();
const notice = { notificationId: 'n-1', category: 'alert' as const, title: 'Fire', count: 2 };
const recorded = (event: NewEvent): RecordedEvent => {
  const address = {
    tenant: 'test',
    aggregate: { bc: 'notify', type: 'customer-inbox', id: 'cust_1' },
  };
  return {
    ...createEnvelope(event, address),
    stream: buildStreamName<string, string>('notify', 'customer-inbox', 1, 'test', 'cust_1'),
    revision: 0,
    position: parsePosition('0000000000000001'),
    occurredAt: at,
    recordedAt: at,
  };
};
const delivered = (channels: Channel[]) => recorded(inboxDelivered({ at, notice, channels }));
const reminded = (channels: Channel[]) =>
  recorded(inboxReminded({ at, notice, channels, step: 2, nextAt: null }));

test('the clock saga waits until the due time, wakes the inbox once, and completes', () => {
  const set = wakeSet({ at, no: 3, wakeAt: new Date(givenNowMs + 5_000).toISOString() });
  givenSaga(customerClock, []).when(set).thenSends([]).thenTimers({ due: 5_000 });
  givenSaga(customerClock, [set])
    .when({ passMs: 5_000 })
    .thenSends([{ id: 'given', command: wakeInbox({ no: 3 }) }])
    .thenStatus('completed');
  givenSaga(customerClock, [set])
    .when({ passMs: 5_000 }, { rejected: { 'customer-inbox.wake': 'gone' } })
    .thenStatus('completed');
});

test('an escalation notifies the other customer, and an acknowledgement goes to both inboxes', async () => {
  const escalated = inboxEscalated({ at, notice, step: 2, to: 'boss', copyId: 'copy' });
  const origin = { customerId: 'cust_1', notificationId: 'n-1' };
  await givenReactor(customerEscalation)
    .when(escalated, { id: 'cust_1' })
    .thenSends([
      {
        id: 'boss',
        command: notifyCustomer({
          notificationId: 'copy',
          category: 'alert',
          title: 'Fire',
          origin,
        }),
      },
    ]);
  await givenReactor(customerEscalation)
    .when(inboxEscalated({ at, notice, step: 2 }), { id: 'cust_1' })
    .thenSends([]);
  const copy = { customerId: 'boss', notificationId: 'copy' };
  const acknowledged = { at, notificationId: 'n-0', by: 'ada' };
  await givenReactor(customerEscalation)
    .when(inboxAcknowledged({ ...acknowledged, origin, copy }))
    .thenSends([
      {
        id: 'cust_1',
        command: acknowledgeNotification({ notificationId: 'n-1', by: 'ada', listed: {} }),
      },
      {
        id: 'boss',
        command: acknowledgeNotification({ notificationId: 'copy', by: 'ada', listed: {} }),
      },
    ]);
  await givenReactor(customerEscalation).when(inboxAcknowledged(acknowledged)).thenSends([]);
});

test('a broadcast is published once, and advances only by its next page', () => {
  const content = { category: 'maintenance' as const, title: 'Sunday' };
  const published = broadcastPublished({ at, ...content });
  const page = { before: 0, reached: 100, cursor: 'c' };
  given(broadcast, []).when(publishBroadcast(content)).then([published]);
  given(broadcast, [published]).when(publishBroadcast(content)).then([]);
  given(broadcast, [published])
    .when(advanceBroadcast(page))
    .then([broadcastAdvanced({ reached: 100, cursor: 'c' })]);
  given(broadcast, [published, broadcastAdvanced({ reached: 100, cursor: 'c' })])
    .when(advanceBroadcast(page))
    .then([]);
  given(broadcast, [published, broadcastAdvanced({ reached: 100, cursor: 'c' })])
    .when(advanceBroadcast({ before: 100, reached: 130, cursor: null }))
    .then([broadcastCompleted({ reached: 130 })]);
  given(broadcast, []).when(advanceBroadcast(page)).then([]);
});

test('a fan-out starts over when a rebuild of the customer list invalidates its cursor', async () => {
  const cursors: unknown[] = [];
  const customers = {
    async bySet(_tenant: string, _set: string, { cursor }: { readonly cursor?: string }) {
      cursors.push(cursor);
      if (cursor !== undefined)
        throw new MillraceError('CURSOR_INVALID', 'cursor of another version');
      return { items: [{ document: { customerId: 'cust_1' } }], cursor: undefined };
    },
  };
  const fanOut = broadcastFanOut({
    documents: () => customers as never,
    load: (async () => ({ state: { title: 'Sunday', category: 'maintenance' } })) as never,
    waitFor: async () => undefined,
  });
  await givenReactor(fanOut)
    .when(broadcastAdvanced({ reached: 100, cursor: 'old' }), { id: 'b-1' })
    .thenSends([
      {
        id: 'cust_1',
        command: notifyCustomer({
          notificationId: idFromKey('broadcast test b-1 cust_1'),
          category: 'maintenance',
          title: 'Sunday',
        }),
      },
      { id: 'b-1', command: advanceBroadcast({ before: 100, reached: 1, cursor: null }) },
    ]);
  assert.deepEqual(cursors, ['old', undefined]);
});

test('messages to the bus have derived ids, so a repeated publish is a duplicate', () => {
  const subjects = createSubjects();
  const idsOf = (event: ReturnType<typeof recorded>, topic?: string) =>
    messagesOf(event, { topic, subjects }).map(({ subject, id }) => [subject, id]);
  assert.deepEqual(idsOf(delivered(['topic']), 'ops'), [
    ['gbe.notify.customer.cust_1.alert', 'n-1'],
    ['gbe.notify.topic.test_ops', 'n-1'],
  ]);
  assert.deepEqual(idsOf(delivered(['topic'])), [['gbe.notify.customer.cust_1.alert', 'n-1']]);
  assert.deepEqual(idsOf(reminded(['socket']), 'ops'), [
    ['gbe.notify.customer.cust_1.alert', 'n-1.2'],
  ]);
  const content = { at, category: 'announcement' as const, title: 'News' };
  assert.deepEqual(idsOf(recorded(broadcastPublished(content))), [
    ['gbe.notify.broadcast.announcement', 'cust_1'],
  ]);
  const announced = { ...notice, category: 'announcement' as const };
  assert.deepEqual(
    idsOf(recorded(inboxDelivered({ at, notice: announced, channels: ['socket'] }))),
    [],
  );
});

test('the outbox gets one message per enabled channel, each with its own idempotency key', () => {
  const mapped = (event: ReturnType<typeof recorded>) =>
    (customerOutbox(['email', 'webhook']).mapper.map(event) as IntegrationMessage[]).map(
      ({ integrationType, headers }) => [integrationType, headers?.['idempotencyKey']],
    );
  assert.deepEqual(mapped(delivered(['socket', 'email', 'webhook'])), [
    ['email:notify', 'test|notify|email|cust_1.n-1'],
    ['webhook:notify', 'test|notify|webhook|cust_1.n-1'],
  ]);
  assert.deepEqual(mapped(reminded(['email'])), [
    ['email:notify', 'test|notify|email|cust_1.n-1.2'],
  ]);
  assert.deepEqual(mapped(delivered(['socket', 'topic'])), []);
});

test('a mail goes to the address that the customer has at the time of sending', async () => {
  const sent: DeliveryMessage['payload'][] = [];
  let email: string | undefined = 'ada@example.org';
  const { send } = customerMails(async ({ payload }) => void sent.push(payload), {
    load: (async () => ({ state: { email }, revision: 0 })) as never,
  });
  const deliver = (content: object) =>
    send(
      {
        id: 'o-1',
        integrationType: 'email:notify',
        eventType: inboxDelivered.type,
        sourceStreamId: 's',
        sourceEventId: 'e',
        tenantId: 'core',
        payload: { customerId: 'cust_1', reminder: 0, ...notice, ...content },
      },
      { signal: AbortSignal.timeout(60_000) } as never,
    );
  await deliver({ title: 'Fire\r\nBcc: eve@example.org' });
  await deliver({ reminder: 2, body: 'Run' });
  const items = [
    { title: 'Sold', count: 3 },
    { title: 'Bought', count: 1 },
  ];
  const digest = { key: 'sales', from: 'A', to: 'B', items };
  await deliver({ category: 'digest', title: 'sales (4)', count: 4, digest });
  assert.deepEqual(
    sent.map((payload) => composeNotificationMail({ payload })),
    [
      {
        to: 'ada@example.org',
        subject: 'Fire Bcc: eve@example.org (2)',
        text: 'Fire\r\nBcc: eve@example.org',
      },
      { to: 'ada@example.org', subject: 'Reminder 2: Fire (2)', text: 'Run' },
      { to: 'ada@example.org', subject: 'sales (4)', text: 'A to B\n\n- Sold (3)\n- Bought' },
    ],
  );
  email = undefined;
  assert.deepEqual(await deliver({}), { kind: 'sent', skipped: 'the customer has no address' });
});

test('a suppressed reminder is neither published nor followed', () => {
  const unwanted = { at, notice, channels: [], step: 2, nextAt: null, isSuppressed: true as const };
  const event = recorded(inboxReminded(unwanted));
  assert.deepEqual(messagesOf(event, { topic: 'ops', subjects: createSubjects() }), []);
  assert.equal(newsOf(event), undefined);
});

test('a change replaces the whole contact', () => {
  given(customerContact, [contactChanged({ email: 'ada@example.org' })])
    .when(changeContact({ topic: 'ops' }))
    .then([contactChanged({ topic: 'ops' })])
    .thenState({ topic: 'ops' });
  given(customerContact, [])
    .when(changeContact({ topic: 'x'.repeat(64) }))
    .thenRejected('topic-too-long');
});

test('only deliveries by the channel `socket` are followed', () => {
  assert.equal(newsOf(delivered(['email'])), undefined);
  assert.deepEqual(newsOf(reminded(['socket'])), {
    kind: 'notification',
    position: '0',
    ...notice,
    reminder: 2,
    at,
  });
  const opened = recorded(wakeSet({ at, no: 1, wakeAt: at }));
  assert.equal(newsOf(opened), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSubjects } from '../contracts/subjects.ts';
import type { DeliveryMessage } from '../delivery/delivery-message.ts';
import type { IntegrationMessage } from '../outbox/outbox-projector.ts';
import { givenEvent, givenNowMs } from '../testing/given-event.ts';
import { given, givenReactor, givenSaga } from '../testing/index.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import { broadcast } from './broadcast.ts';
import { broadcastFanOut } from './broadcast-fan-out.ts';
import {
  advanceBroadcast,
  broadcastAdvanced,
  broadcastCompleted,
  broadcastPublished,
  publishBroadcast,
} from './broadcast-events.ts';
import { messagesOf } from './customer-bus.ts';
import { customerClock } from './customer-clock.ts';
import { customerContact } from './customer-contact.ts';
import { customerEscalation } from './customer-escalation.ts';
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
import { newsOf } from './customer-news.ts';
import { composeNotificationMail, customerMails, customerOutbox } from './customer-outbox.ts';
import type { Channel } from './customer-schemas.ts';

const at = new Date(givenNowMs).toISOString();
const notice = { notificationId: 'n-1', category: 'alert' as const, title: 'Fire', count: 2 };
const recorded = (event: Parameters<typeof givenEvent>[0]) =>
  givenEvent(event, { place: 0, nowMs: givenNowMs, id: 'cust_1' });
const delivered = (channels: Channel[]) => recorded(inboxDelivered({ at, notice, channels }));
const reminded = (channels: Channel[]) =>
  recorded(inboxReminded({ at, notice, channels, step: 2, nextAt: null }));

test('the clock of a customer waits until it is time, asks once, and is done', () => {
  const set = wakeSet({ at, no: 3, wakeAt: new Date(givenNowMs + 5_000).toISOString() });
  givenSaga(customerClock, []).when(set).thenSends([]).thenTimers({ due: 5_000 });
  givenSaga(customerClock, [set])
    .when({ passMs: 5_000 })
    .thenSends([{ id: 'given', command: wakeInbox({ no: 3 }) }])
    .thenStatus('completed');
  givenSaga(customerClock, [set])
    .when({ passMs: 5_000 }, { refused: { 'customer-inbox.wake': 'gone' } })
    .thenStatus('completed');
});

test('what is escalated goes to the other customer, and what is acknowledged there to the first', async () => {
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

test('a broadcast is published once, and advances by the page that is next', () => {
  const words = { category: 'maintenance' as const, title: 'Sunday' };
  const published = broadcastPublished({ at, ...words });
  const page = { before: 0, reached: 100, cursor: 'c' };
  given(broadcast, []).when(publishBroadcast(words)).then([published]);
  given(broadcast, [published]).when(publishBroadcast(words)).then([]);
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

test('a broadcast whose list of customers is built anew on the way begins again', async () => {
  const asked: unknown[] = [];
  const customers = {
    async bySet(_tenant: string, _set: string, { cursor }: { readonly cursor?: string }) {
      asked.push(cursor);
      if (cursor !== undefined) throw new MillraceError('CURSOR_INVALID', 'of another version');
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
  assert.deepEqual(asked, ['old', undefined]);
});

test('the bus gets what is delivered under ids that a repeat has, too', () => {
  const subjects = createSubjects();
  const idsOf = (event: ReturnType<typeof recorded>, topic?: string) =>
    messagesOf(event, { topic, subjects }).map(({ subject, id }) => [subject, id]);
  assert.deepEqual(idsOf(delivered(['topic']), 'ops'), [
    ['gbe.notify.customer.cust_1.alert', 'n-1'],
    ['gbe.notify.topic.ops', 'n-1'],
  ]);
  assert.deepEqual(idsOf(delivered(['topic'])), [['gbe.notify.customer.cust_1.alert', 'n-1']]);
  assert.deepEqual(idsOf(reminded(['socket']), 'ops'), [
    ['gbe.notify.customer.cust_1.alert', 'n-1.2'],
  ]);
  const words = { at, category: 'announcement' as const, title: 'News' };
  assert.deepEqual(idsOf(recorded(broadcastPublished(words))), [
    ['gbe.notify.broadcast.announcement', 'cust_1'],
  ]);
  const told = { ...notice, category: 'announcement' as const };
  assert.deepEqual(idsOf(recorded(inboxDelivered({ at, notice: told, channels: ['socket'] }))), []);
});

test('the outbox gets one message for each channel that somebody sends for, each with its own key', () => {
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

test('a mail is made for the address that the customer has when it is sent', async () => {
  const sent: DeliveryMessage['payload'][] = [];
  let email: string | undefined = 'ada@example.org';
  const { send } = customerMails(async ({ payload }) => void sent.push(payload), {
    load: (async () => ({ state: { email }, revision: 0 })) as never,
  });
  const deliver = (words: object) =>
    send(
      {
        id: 'o-1',
        integrationType: 'email:notify',
        eventType: inboxDelivered.type,
        sourceStreamId: 's',
        sourceEventId: 'e',
        tenantId: 'core',
        payload: { customerId: 'cust_1', reminder: 0, ...notice, ...words },
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

test('a reminder that the customer does not want is told nobody', () => {
  const unwanted = { at, notice, channels: [], step: 2, nextAt: null, isSuppressed: true as const };
  const event = recorded(inboxReminded(unwanted));
  assert.deepEqual(messagesOf(event, { topic: 'ops', subjects: createSubjects() }), []);
  assert.equal(newsOf(event), undefined);
});

test('a contact is what was said last', () => {
  given(customerContact, [contactChanged({ email: 'ada@example.org' })])
    .when(changeContact({ topic: 'ops' }))
    .then([contactChanged({ topic: 'ops' })])
    .thenState({ topic: 'ops' });
});

test('screens are told what goes by the socket, and nothing else', () => {
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeliveryMessage, Destination } from 'millrace/delivery';
import type { IntegrationEventMapper } from 'millrace/outbox';
import { createPlatform, type Platform } from 'millrace/platform';
import { collab } from '../collab.ts';
import { changePreferences, registerUser } from '../user-events.ts';
import { notificationCreated } from './notification-events.ts';
import { composeMail, mailDestination, notificationOutbox } from './notifier.ts';

const tenant = 'core';
const notice = {
  userId: 'bob',
  type: 'task.assigned',
  title: 'Task assigned',
  message: 'A task was assigned to you',
  resourceId: 'c-1',
  workspaceId: 'w-1',
  chatId: 'c-1',
  createdAt: '2025-09-30T10:00:00.000Z',
} as const;

function mapped(email: boolean): unknown {
  const event = { ...notificationCreated({ ...notice, email }), tenant };
  return notificationOutbox.mapper.map(event as Parameters<IntegrationEventMapper['map']>[0]);
}

test('the outbox message contains recipient and text, but no address', () => {
  assert.equal(mapped(false), undefined);
  assert.deepEqual(mapped(true), {
    integrationType: 'email:notification',
    eventType: 'notification.created.v1',
    orderingKey: 'bob',
    payload: {
      userId: 'bob',
      title: 'Task assigned',
      message: 'A task was assigned to you',
      resourceId: 'c-1',
      workspaceId: 'w-1',
      chatId: 'c-1',
    },
  });
});

test('the address is looked up when the e-mail is sent', async () => {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [collab()],
  });
  const sent: DeliveryMessage['payload'][] = [];
  const send = mailDestination(async ({ payload }) => {
    sent.push(payload);
    return { kind: 'sent', receipt: 'r-1' };
  }, platform);
  assert.deepEqual(await deliver(send), { kind: 'sent', skipped: 'user has no e-mail address' });
  await ask(platform, registerUser({ username: 'bob', email: 'bob@example.org' }));
  assert.deepEqual(await deliver(send), { kind: 'sent', receipt: 'r-1' });
  await ask(platform, changePreferences({ email: 'none' }));
  assert.deepEqual(await deliver(send), { kind: 'sent', skipped: 'user has disabled e-mail' });
  const mail = {
    to: 'bob@example.org',
    subject: 'Task assigned',
    text: 'A task was assigned to you',
  };
  assert.deepEqual(sent, [mail]);
  assert.deepEqual(composeMail({ payload: mail }), mail);
});

test('an outbox message that is not a notification is rejected', async () => {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [collab()],
  });
  const send = mailDestination(async () => undefined, platform);
  await assert.rejects(deliver(send, {}), /userId/);
});

function deliver(
  send: Destination,
  payload: DeliveryMessage['payload'] = notice,
): ReturnType<Destination> {
  const message = {
    id: 'o-1',
    integrationType: 'email:notification',
    eventType: notificationCreated.type,
    sourceStreamId: 'collab.notification.v1-core-n-1',
    sourceEventId: 'e-1',
    tenantId: tenant,
    payload,
  };
  return send(message, {
    idempotencyKey: 'e-1',
    attempt: 1,
    isDuplicate: false,
    signal: AbortSignal.timeout(60_000),
    tenantId: tenant,
    correlationId: undefined,
  });
}

function ask(platform: Platform, command: Parameters<Platform['handle']>[0]['command']) {
  return platform.handle({ tenant, id: 'bob', command });
}

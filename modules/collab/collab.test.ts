// The document's scenario in one process: a message with a tag, and everything that follows from it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeliveryMessage } from 'millrace/delivery';
import { createPlatform, type Platform } from 'millrace/platform';
import type { RecordedEvent } from 'millrace/store';
import { createChat, messagePosted, postMessage } from './chat-events.ts';
import { collab } from './collab.ts';
import type { ChatType } from './fields.ts';
import { changePreferences } from './user-events.ts';
import { ensureUser } from './user.ts';
import { addMember, createWorkspace } from './workspace-events.ts';

const tenant = 'core';

interface Rig extends AsyncDisposable {
  readonly platform: Platform;
  readonly mails: AsyncIterator<DeliveryMessage>;
  send(
    ...request: Parameters<Platform['handle']>
  ): Promise<readonly { readonly eventId: string }[]>;
}

/** A platform with a chat of `ada` and `bob`; `bob` gets e-mail. */
async function rig(type: ChatType): Promise<Rig> {
  const mails = new TransformStream<DeliveryMessage, DeliveryMessage>(undefined, {
    highWaterMark: 100,
  });
  const writer = mails.writable.getWriter();
  const platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [collab({ email: (message) => writer.write(message) })],
  });
  await platform.start();
  const { load } = platform;
  const context = {
    load,
    send: (...asked: Parameters<Platform['handle']>) => platform.handle(...asked),
  };
  for (const principal of ['ada', 'bob']) {
    await ensureUser(context, { tenant, principal, email: `${principal}@example.org` });
  }
  const send: Rig['send'] = async (request) => (await platform.handle(request)).events;
  await send({ tenant, id: 'bob', command: changePreferences({ email: 'all' }) });
  const name = { name: 'Team', createdBy: 'ada', username: 'ada' };
  await send({ tenant, id: 'w-1', command: createWorkspace(name) });
  const bob = { userId: 'bob', username: 'bob', role: 'member', by: 'ada' } as const;
  await send({ tenant, id: 'w-1', command: addMember(bob) });
  const chat = { workspaceId: 'w-1', type, title: 'Ship', isPublic: false, createdBy: 'ada' };
  await send({ tenant, id: 'c-1', command: createChat({ ...chat, participants: ['bob'] }) });
  return {
    platform,
    mails: mails.readable[Symbol.asyncIterator](),
    send,
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  };
}

/** Waits until the flow has this many events, and returns them. */
async function flow(
  { platform }: Rig,
  correlationId: string,
  count: number,
): Promise<readonly RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  const signal = AbortSignal.timeout(60_000);
  for await (const item of platform.engines.store.subscribe({ signal })) {
    if (item.kind !== 'events') continue;
    found.push(...item.events.filter((event) => event.correlationId === correlationId));
    if (found.length >= count) break;
  }
  return found;
}

test('a status tag changes the task, notifies, sends an e-mail and the bot replies', async () => {
  await using running = await rig('task');
  const message = { messageId: 'm-1', authorId: 'ada', content: 'Закончил работу\n#status Done' };
  await running.send({
    tenant,
    id: 'c-1',
    command: postMessage(message),
    correlationId: 'flow-1',
    user: { id: 'ada' },
  });
  const events = await flow(running, 'flow-1', 6);
  const causes = new Map(events.map(({ eventId, type }) => [eventId, type]));
  const chain = events.map(({ type, causationId = '' }) => `${causes.get(causationId)} → ${type}`);
  assert.deepEqual(chain.slice(1).toSorted(), [
    'chat.message-posted.v1 → chat.tags-parsed.v1',
    'chat.tags-parsed.v1 → task.status-changed.v1',
    'chat.tags-parsed.v1 → task.tags-answered.v1',
    'task.status-changed.v1 → notification.created.v1',
    'task.tags-answered.v1 → chat.message-posted.v1',
  ]);
  const find = (type: string): RecordedEvent | undefined =>
    events.findLast((event) => event.type === type);
  const changed = find('task.status-changed.v1');
  assert.ok(changed);
  const { timestamp: _at, ...payload } = changed.payload as Record<string, unknown>;
  assert.deepEqual(payload, {
    taskId: 'c-1',
    chatId: 'c-1',
    workspaceId: 'w-1',
    oldStatus: 'To Do',
    newStatus: 'Done',
    changedBy: 'ada',
  });
  assert.deepEqual(changed?.user, { id: 'ada' });
  const parsed = find('chat.tags-parsed.v1')?.payload as Record<string, unknown>;
  assert.deepEqual(parsed['commands'], [{ type: 'ChangeStatusCommand', status: 'Done' }]);
  const bot = find(messagePosted.type)?.payload as Record<string, unknown>;
  assert.equal(bot['content'], '✅ Status changed to Done');
  assert.equal(bot['inReplyTo'], 'm-1');

  const mail = await running.mails.next();
  assert.deepEqual(mail.value?.payload, {
    to: 'bob@example.org',
    subject: 'Task status changed',
    text: 'Task status changed to Done',
  });
  // Only the user's own events contain the address; the outbox does not.
  const { store, outbox } = running.platform.engines;
  assert.ok(outbox);
  for await (const event of store.readAll()) {
    if (event.type.startsWith('user.')) continue;
    assert.ok(!JSON.stringify(event).includes('@example.org'), event.type);
  }
  const rows = await outbox.list({});
  assert.ok(!JSON.stringify(rows).includes('@example.org'));
});

test('a message with 1,000 tags gets one reply of the bot', async () => {
  await using running = await rig('task');
  const content = '#status Done\n#status nothing\n'.repeat(500);
  const command = postMessage({ messageId: 'm-1', authorId: 'ada', content });
  await running.send({ tenant, id: 'c-1', command, correlationId: 'flow-1' });
  const events = await flow(running, 'flow-1', 6);
  const lines = events.flatMap((event) =>
    messagePosted.is(event) && event.payload.authorId === 'bot'
      ? event.payload.content.split('\n')
      : [],
  );
  assert.equal(lines.length, 1_000);
});

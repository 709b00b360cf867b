// Kills the product after each step of a collab flow and restarts it: every consequence of a message
// happens once, in the store, the chat, on screens and in mailboxes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import { startChild, startSmtp, type Child } from '../../src/testing/index.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import { collab } from '../../modules/collab/index.ts';
import {
  personOf,
  type PersonResponse,
  type Person,
  type Screen,
  type SocketMessage,
} from '../../modules/collab/testing/web-rig.ts';
import { createWorkspace, inTime, isText, until } from '../store/rig.ts';
import type { CollabProductInput, KillPoint } from './collab-product-main.ts';
import { causesOf, chainFor, eventsOf } from './collab-scenario.ts';
import { outboxOf } from './outbox-of.ts';

const tenant = 'core';
/** One message for each step; every message changes the status. */
const killPoints: readonly (KillPoint & { readonly status: string })[] = [
  'chat.message-posted.v1',
  'chat.tags-parsed.v1',
  'task.status-changed.v1',
  'notification.created.v1',
  'bot',
  'mail',
].map((at, index) => ({
  at,
  flow: `flow-${index}`,
  status: index % 2 === 0 ? 'In Progress' : 'Done',
}));

test('every flow completes once although the product is killed after each step', async () => {
  await using workspace = await createWorkspace();
  await using smtp = await startSmtp();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await using reserved = await reservePort();
  const { host, port } = reserved;
  const input: CollabProductInput = { store, host, port, smtp: smtp.url };
  const start = async (killPoint?: KillPoint): Promise<Child> => {
    const script = new URL('./collab-product-main.ts', import.meta.url);
    const child = startChild(script, { input: { ...input, killPoint } });
    await child.message(isText('started'));
    return child;
  };
  // This platform only observes, and does none of the work.
  await using platform = await createPlatform({
    engines: { store },
    roles: ['api'],
    modules: [collab()],
  });
  const person = async (name: string): Promise<Person> => {
    const { secret } = await platform.tokens.create({ name, scopes: ['use'], tenant });
    return personOf({ url: `http://${host}:${port}` }, name, secret);
  };
  const [zoe, alex] = [await person('zoe'), await person('alex')];
  const received: SocketMessage[] = [];
  let chatId = '';
  let workspaceId = '';

  let child: Child | undefined;
  /** A request without a response is sent again to the next process. */
  let posting: Promise<PersonResponse> | undefined;
  try {
    for (const [index, killPoint] of killPoints.entries()) {
      child = await start(killPoint);
      if (index === 0) ({ chatId, workspaceId } = await prepare(zoe, alex));
      assert.equal((await posting)?.status ?? 201, 201);
      using screen = await resume(alex, { chatId, workspaceId }, received);
      posting = post(zoe, { chatId, ...killPoint });
      assert.equal(
        await inTime(`the process is killed at ${killPoint.at}`, child.ended),
        'SIGKILL',
      );
      await screen.closed();
      received.push(...screen.received);
    }
    child = await start();
    assert.equal((await posting)?.status, 201);
    using screen = await resume(alex, { chatId, workspaceId }, received);
    await isOver(platform);
    await until('the screen shows all messages and changes', () => {
      const all = [...received, ...screen.received];
      const isAll = contentsOf(all).length >= killPoints.length * 2;
      return isAll && changesIn(all).length >= killPoints.length;
    });
    received.push(...screen.received);
    await everythingOnce(platform, { zoe, alex, chatId });
  } finally {
    await child?.kill();
  }

  assert.deepEqual(contentsOf(received).toSorted(), killPoints.flatMap(messagesOf).toSorted());
  assert.deepEqual(
    changesIn(received),
    killPoints.map(({ status }, index) => ({
      status: { old: killPoints[index - 1]?.status ?? 'To Do', new: status },
    })),
  );
  const ids = smtp.messages().map(({ source }) => /^Message-ID: (.+)$/im.exec(source)?.[1]);
  assert.equal(new Set(ids).size, killPoints.length);
  assert.ok(ids.length > killPoints.length, 'the unsettled mail was not sent again');
});

async function prepare(
  zoe: Person,
  alex: Person,
): Promise<{ readonly chatId: string; readonly workspaceId: string }> {
  const preferences = { email: 'all' };
  await alex.send('PUT', '/api/v1/users/me', { email: 'alex@example.org', preferences });
  const created = await zoe.send('POST', '/api/v1/workspaces', { name: 'Mill' });
  const { workspaceId } = created.body as { workspaceId: string };
  await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/members`, { username: alex.name });
  const opened = await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/chats`, {
    type: 'task',
    title: 'Wheel',
    participants: [alex.name],
  });
  const { chatId } = opened.body as { chatId: string };
  await until('the task exists', async () => {
    return (await zoe.get(`/api/v1/tasks/${chatId}`)).status === 200;
  });
  return { chatId, workspaceId };
}

/** Subscribes as clients do: from the last received position, or from now on. */
async function resume(
  who: Person,
  { chatId, workspaceId }: { readonly chatId: string; readonly workspaceId: string },
  received: readonly SocketMessage[],
): Promise<Screen> {
  const screen = who.connect();
  await screen.receive('connected');
  const lastOf = (types: RegExp): string | undefined =>
    received.findLast(({ type }) => types.test(type))?.position;
  const chatSince = lastOf(/^chat\.|^subscribed\.chat/);
  screen.send({ type: 'subscribe.chat', chatId, since: chatSince });
  await screen.receive('subscribed.chat');
  screen.send({ type: 'subscribe.workspace', workspaceId, since: lastOf(/^task\.|\.workspace$/) });
  await screen.receive('subscribed.workspace');
  return screen;
}

/** Sends the same message until it gets a response. */
async function post(
  who: Person,
  { chatId, flow, status }: { chatId: string; flow: string; status: string },
): Promise<PersonResponse> {
  let response: PersonResponse | undefined;
  await until(`${flow} is posted`, async () => {
    response = await who
      .send(
        'POST',
        `/api/v1/chats/${chatId}/messages`,
        { content: contentOf({ flow, status }) },
        { 'idempotency-key': flow, 'x-correlation-id': flow },
      )
      .catch(() => undefined);
    return response !== undefined;
  });
  return response as PersonResponse;
}

async function isOver(platform: Platform): Promise<void> {
  const chain = chainFor(1);
  for (const { flow } of killPoints) {
    assert.deepEqual(causesOf(await eventsOf(platform, flow, chain.length)), chain);
  }
  await until('all mails are sent', async () => {
    const { SENT, PENDING, CLAIMED, FAILED } = await outboxOf(platform).counts();
    return SENT === killPoints.length && PENDING + CLAIMED + FAILED === 0;
  });
}

/** Checks the queries, and that no further event arrived. */
async function everythingOnce(
  platform: Platform,
  { zoe, alex, chatId }: { readonly zoe: Person; readonly alex: Person; readonly chatId: string },
): Promise<void> {
  const contents = async (): Promise<string[]> => {
    const path = `/api/v1/chats/${chatId}/messages?order=asc`;
    const { body } = await zoe.get<{ items: { content: string }[] }>(path);
    return body.items.map(({ content }) => content);
  };
  await until(
    'all messages are listed',
    async () => (await contents()).length >= killPoints.length * 2,
  );
  assert.deepEqual((await contents()).toSorted(), killPoints.flatMap(messagesOf).toSorted());
  await until('all notifications are listed', async () => {
    const { body } = await alex.get('/api/v1/notifications');
    return body['unreadCount'] === killPoints.length;
  });
  for (const { flow } of killPoints) {
    assert.deepEqual(causesOf(await eventsOf(platform, flow, 1)), chainFor(1));
  }
  assert.equal(await platform.engines.subscriptions.deadLetters.count({}), 0);
  assert.equal((await outboxOf(platform).counts()).DEAD, 0);
}

function contentOf({ flow, status }: { readonly flow: string; readonly status: string }): string {
  return `${flow}\n#status ${status}`;
}

/** The message and the reply of the bot. */
function messagesOf(killPoint: {
  readonly flow: string;
  readonly status: string;
}): readonly string[] {
  return [contentOf(killPoint), `✅ Status changed to ${killPoint.status}`];
}

function contentsOf(received: readonly SocketMessage[]): readonly string[] {
  return received
    .filter(({ type }) => type === 'chat.message.posted')
    .map(({ message }) => (message as { content: string }).content);
}

function changesIn(received: readonly SocketMessage[]): readonly unknown[] {
  return received.filter(({ type }) => type === 'task.updated').map(({ changes }) => changes);
}

// Live messages over real WebSockets: each once, in order, and only to users with access.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createNotification } from '../notifications/notification-events.ts';
import {
  openRig,
  until,
  type Person,
  type Rig,
  type Screen,
  type SocketMessage,
} from '../testing/web-rig.ts';

let rig: Rig;
let zoe: Person;
let alex: Person;
before(async () => {
  rig = await openRig();
  zoe = await rig.person('zoe');
  alex = await rig.person('alex');
});
after(() => rig[Symbol.asyncDispose]());

const post = (author: Person, chatId: string, content: string) =>
  author.send<{ messageId: string }>('POST', `/api/v1/chats/${chatId}/messages`, { content });

const contentsOf = ({ received }: Screen): unknown[] =>
  received
    .filter(({ type }) => type === 'chat.message.posted')
    .map(({ message }) => (message as { content: string }).content);

async function follow(user: Person, kind: 'chat' | 'workspace', id: string): Promise<Screen> {
  const screen = user.connect();
  await screen.receive('connected');
  screen.send({ type: `subscribe.${kind}`, [`${kind}Id`]: id });
  await screen.receive(`subscribed.${kind}`);
  return screen;
}

/** Waits for the task, because a reactor creates it after the chat. */
async function makeTask(workspaceId: string, more: object = {}): Promise<string> {
  const id = await rig.chat(zoe, workspaceId, { type: 'task', title: 'T', ...more });
  await until(async () => (await zoe.get(`/api/v1/tasks/${id}`)).status === 200);
  return id;
}

test('a subscriber of a chat receives all its messages, each with a position', async () => {
  const w = await rig.workspace(zoe, alex);
  const chatId = await rig.chat(zoe, w);
  using screen = await follow(zoe, 'chat', chatId);
  using other = await follow(alex, 'chat', chatId);
  const {
    body: { messageId },
  } = await post(alex, chatId, 'hello');
  await alex.send('PUT', `/api/v1/messages/${messageId}`, { content: 'hallo' });
  await alex.send('DELETE', `/api/v1/messages/${messageId}`);
  await alex.send('DELETE', `/api/v1/chats/${chatId}/participants/${alex.name}`);
  await screen.receive('chat.participant.left');
  const messages = screen.received.filter(({ type }) => /^chat\.(message|participant)/.test(type));
  assert.deepEqual(
    messages.map(({ type }) => type),
    [
      'chat.participant.joined',
      'chat.message.posted',
      'chat.message.edited',
      'chat.message.deleted',
      'chat.participant.left',
    ],
  );
  const isLater = messages.map(
    ({ position = '' }, at) => at === 0 || position > (messages[at - 1]?.position ?? ''),
  );
  assert.ok(isLater.every(Boolean));
  assert.deepEqual([messages[1]?.['chatId'], messages[2]?.['content']], [chatId, 'hallo']);
  // A user who left a public chat can still follow it.
  other.send({ type: 'chat.typing', chatId });
  other.send({ type: 'chat.typing', chatId });
  const typing = await screen.receive('chat.typing');
  assert.deepEqual([typing['userId'], typing['username']], [alex.name, alex.name]);
  other.send({ type: 'ping' });
  await other.receive('pong');
  assert.ok(!other.received.some(({ type }) => type === 'chat.typing'));
  screen.send({ type: 'unsubscribe.chat', chatId });
  await screen.receive('unsubscribed.chat');
  await post(zoe, chatId, 'after the end');
  await other.receive(
    'chat.message.posted',
    ({ message }) => (message as { content: string }).content === 'after the end',
  );
  assert.ok(!contentsOf(screen).includes('after the end'));
});

test('missed messages come before live ones, without gaps and duplicates', async () => {
  const w = await rig.workspace(zoe, alex);
  const chatId = await rig.chat(zoe, w);
  const task = await makeTask(w);
  let since: string | undefined;
  {
    using screen = await follow(alex, 'chat', chatId);
    await post(zoe, chatId, 'm0');
    since = (await screen.receive('chat.message.posted')).position;
  }
  await post(zoe, task, '#status In Progress');
  const posting = (async () => {
    for (let at = 1; at <= 50; at += 1) await post(zoe, chatId, `m${at}`);
  })();
  using screen = alex.connect();
  await screen.receive('connected');
  screen.send({ type: 'subscribe.chat', chatId, since });
  screen.send({ type: 'subscribe.workspace', workspaceId: w, since });
  await posting;
  await post(zoe, task, '#status Done');
  const expected = Array.from({ length: 50 }, (_each, at) => `m${at + 1}`);
  await until(() => contentsOf(screen).length >= expected.length);
  await until(() => screen.received.filter(({ type }) => type === 'task.updated').length >= 2);
  screen.send({ type: 'ping' });
  await screen.receive('pong');
  assert.deepEqual(contentsOf(screen), expected);
  const changes = screen.received
    .filter(({ type }) => type === 'task.updated')
    .map((each) => each['changes']);
  assert.deepEqual(changes, [
    { status: { old: 'To Do', new: 'In Progress' } },
    { status: { old: 'In Progress', new: 'Done' } },
  ]);
  screen.send({ type: 'subscribe.chat', chatId, since: 'yesterday' });
  assert.equal((await screen.receive('error'))['code'], 'VALIDATION_ERROR');
});

test('a subscription needs access, and ends when access is lost', async () => {
  const w = await rig.workspace(zoe, alex);
  const closed = await rig.chat(zoe, w, { isPublic: false, participants: [alex.name] });
  const mine = await rig.chat(zoe, w, { isPublic: false });
  using screen = await follow(alex, 'chat', closed);
  screen.send({ type: 'subscribe.chat', chatId: mine, id: 'a' });
  const rejected = await screen.receive('error', ({ id }) => id === 'a');
  assert.deepEqual([rejected['code']], ['NOT_FOUND']);
  screen.send({ type: 'chat.typing', chatId: mine, id: 'b' });
  await screen.receive('error', ({ id }) => id === 'b');
  const stranger = await rig.person('stranger', 'acme');
  using strange = stranger.connect();
  await strange.receive('connected');
  strange.send({ type: 'subscribe.workspace', workspaceId: w });
  assert.equal((await strange.receive('error'))['code'], 'NOT_FOUND');

  await post(zoe, closed, 'before the removal');
  await screen.receive('chat.message.posted');
  await zoe.send('DELETE', `/api/v1/chats/${closed}/participants/${alex.name}`);
  await screen.receive('unsubscribed.chat', ({ chatId }) => chatId === closed);
  using board = await follow(alex, 'workspace', w);
  await post(zoe, closed, 'after the removal');
  await zoe.send('DELETE', `/api/v1/workspaces/${w}/members/${alex.name}`);
  await board.receive('unsubscribed.workspace');
  await makeTask(w);
  screen.send({ type: 'ping' });
  board.send({ type: 'ping' });
  await Promise.all([screen.receive('pong'), board.receive('pong')]);
  assert.deepEqual(contentsOf(screen), ['before the removal']);
  assert.ok(!board.received.some(({ type }) => type === 'task.updated'));
});

test('a subscriber of a workspace receives only visible tasks', async () => {
  const w = await rig.workspace(zoe, alex);
  using hers = await follow(zoe, 'workspace', w);
  using his = await follow(alex, 'workspace', w);
  const closed = await makeTask(w, { isPublic: false });
  const open = await makeTask(w);
  const last = ({ taskId }: SocketMessage): boolean => taskId === open;
  await Promise.all([hers.receive('task.updated', last), his.receive('task.updated', last)]);
  const tasks = ({ received }: Screen): unknown[] =>
    received.filter(({ type }) => type === 'task.updated').map(({ taskId }) => taskId);
  assert.deepEqual([tasks(hers), tasks(his)], [[closed, open], [open]]);
  assert.deepEqual(his.received.find(({ type }) => type === 'task.updated')?.['changes'], {
    type: { old: null, new: 'task' },
    title: { old: null, new: 'T' },
    status: { old: null, new: 'To Do' },
  });
  // Replayed messages follow the same access rule.
  using later = alex.connect();
  await later.receive('connected');
  later.send({ type: 'subscribe.workspace', workspaceId: w, since: '0000000000000000' });
  await later.receive('task.updated', last);
  assert.deepEqual(tasks(later), [open]);
});

test('a notification reaches all connections of its user and no other user', async () => {
  using one = alex.connect();
  using two = alex.connect();
  using hers = zoe.connect();
  await Promise.all([one, two, hers].map((screen) => screen.receive('connected')));
  const notify = (id: string, userId: string) =>
    rig.platform.handle({
      tenant: 'core',
      id,
      command: createNotification({
        userId,
        type: 'task.status_changed',
        title: 'Task status changed',
        message: 'Task status changed to Done',
        resourceId: 't',
        workspaceId: 'w',
        chatId: 't',
        email: true,
      }),
    });
  await notify('n-alex', alex.name);
  await notify('n-zoe', zoe.name);
  const idOf = ({ notification }: SocketMessage): string =>
    (notification as { notificationId: string }).notificationId;
  const isOurs = (message: SocketMessage): boolean => idOf(message).startsWith('n-');
  const messages = await Promise.all(
    [one, two, hers].map((screen) => screen.receive('notification.new', isOurs)),
  );
  assert.deepEqual(messages.map(idOf), ['n-alex', 'n-alex', 'n-zoe']);
  assert.ok(!JSON.stringify(messages).includes('"email"'));
});

test('credentials for all tenants get only the messages of the platform', async () => {
  const { secret } = await rig.platform.tokens.create({ name: 'ops', scopes: ['admin'] });
  const socket = new WebSocket(`${rig.server.url.replace('http', 'ws')}/ws?token=${secret}`);
  const received: SocketMessage[] = [];
  socket.addEventListener('message', ({ data }) => {
    received.push(JSON.parse(String(data)) as SocketMessage);
  });
  await until(() => received.some(({ type }) => type === 'ready'));
  socket.send(JSON.stringify({ type: 'ping' }));
  await until(() => received.some(({ code }) => code === 'FORBIDDEN'));
  socket.send(
    JSON.stringify({ type: 'subscribe', id: 's', category: 'collab.chat.v1', after: 'end' }),
  );
  await until(() => received.some(({ type }) => type === 'subscribed'));
  assert.ok(!received.some(({ type }) => type === 'connected'));
  socket.close();
});

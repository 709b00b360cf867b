// The scenario of the event flow document on any engines, over HTTP, WebSocket and SMTP: a user writes
// "#status Done", and every consequence follows in one flow.

import assert from 'node:assert/strict';
import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { createPlatform, type EngineUrls, type Platform } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { startSmtp, type SmtpServer } from '../../src/testing/index.ts';
import type { Trace, TraceNode } from '../../src/traces/index.ts';
import { collab, composeMail } from '../../modules/collab/index.ts';
import {
  personOf,
  type Person,
  type Screen,
  type SocketMessage,
} from '../../modules/collab/testing/web-rig.ts';
import { until } from '../store/rig.ts';
import { outboxOf } from './outbox-of.ts';

const tenant = 'core';
const content = 'Закончил работу\n#status Done';

/**
 * Each event with its cause, one notification per recipient. The order of notifications and the bot's
 * reply is not fixed.
 */
export function chainFor(recipients: number): readonly string[] {
  return [
    'a command → chat.message-posted.v1',
    'chat.message-posted.v1 → chat.tags-parsed.v1',
    'chat.tags-parsed.v1 → task.status-changed.v1',
    'chat.tags-parsed.v1 → task.tags-answered.v1',
    'task.tags-answered.v1 → chat.message-posted.v1',
    ...Array.from({ length: recipients }, () => 'task.status-changed.v1 → notification.created.v1'),
  ].toSorted();
}

interface Cast {
  readonly platform: Platform;
  readonly smtp: SmtpServer;
  /** `zoe` writes; `alex` takes part and wants mails; `vera` watches and wants no mails. */
  readonly zoe: Person;
  readonly alex: Person;
  readonly vera: Person;
  readonly admin: Person;
  readonly workspaceId: string;
  readonly chatId: string;
}

export async function collabScenario(engines: EngineUrls): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const cast = await prepare(engines, opened);
  const { zoe, alex, vera, workspaceId, chatId } = cast;
  const [hers, his, board] = await Promise.all([
    follow(zoe, { chatId }),
    follow(alex, { chatId, workspaceId }),
    follow(vera, { workspaceId }),
  ]);
  for (const screen of [hers, his, board]) opened.use(screen);

  // The path in the event flow document.
  const posted = await zoe.send('POST', `/api/chats/${chatId}/messages`, { content });
  assert.equal(posted.status, 201);
  const { messageId } = posted.body;
  assert.deepEqual(
    { ...posted.body, messageId: '', timestamp: '' },
    { messageId: '', chatId, authorId: zoe.name, content, timestamp: '' },
  );
  const flow = posted.headers.get('x-correlation-id') ?? '';

  await isOneChain(cast, flow);
  await boardIsUpdated(cast, [his, board]);
  await chatShows(cast, { screens: [hers, his], messageId });
  await othersAreNotified(cast, {
    notified: new Map([
      [alex, his],
      [vera, board],
    ]),
    notNotified: hers,
  });
  await mailIsSent(cast);
  await traceIsShown(cast, flow);
}

async function prepare(engines: EngineUrls, opened: AsyncDisposableStack): Promise<Cast> {
  const smtp = opened.use(await startSmtp());
  const from = 'Mill <mill@example.org>';
  const email = opened.use(
    await smtpDestination({ transport: smtp.url, from, compose: composeMail }),
  );
  const platform = opened.use(
    await createPlatform({
      engines,
      modules: [collab({ email })],
      dispatcher: { tickIntervalMs: 50 },
    }),
  );
  await platform.start();
  const server = opened.use(await startApi(platform, { port: 0 }));
  const person = async (name: string, scope: 'admin' | 'use' = 'use'): Promise<Person> => {
    const wanted = { name, scopes: [scope], tenant };
    return personOf(server, name, (await platform.tokens.create(wanted)).secret);
  };
  const people = {
    zoe: await person('zoe'),
    alex: await person('alex'),
    vera: await person('vera'),
  };
  const { zoe, alex, vera } = people;
  await zoe.send('PUT', '/api/v1/users/me', { email: 'zoe@example.org', preferences: all });
  await alex.send('PUT', '/api/v1/users/me', { email: 'alex@example.org', preferences: all });
  await vera.send('PUT', '/api/v1/users/me', {
    email: 'vera@example.org',
    preferences: { email: 'none' },
  });

  const created = await zoe.send('POST', '/api/v1/workspaces', { name: 'Mill' });
  const { workspaceId } = created.body as { workspaceId: string };
  for (const { name: username } of [alex, vera]) {
    await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/members`, { username });
  }
  const opening = await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/chats`, {
    type: 'task',
    title: 'Wheel',
    initialMessage: '#status In Progress',
  });
  const { chatId } = opening.body as { chatId: string };
  await until('the task is in progress', async () => {
    const { body } = await zoe.get(`/api/v1/tasks/${chatId}`);
    return body['status'] === 'In Progress';
  });
  // Users who join now must not be notified of earlier events.
  await caughtUp(platform);
  await zoe.send('POST', `/api/v1/chats/${chatId}/participants`, { userId: alex.name });
  await vera.send('PUT', `/api/v1/tasks/${chatId}/watch`);
  return { platform, smtp, ...people, admin: await person('ops', 'admin'), workspaceId, chatId };
}

const all = { email: 'all' } as const;

/** Waits until the reactors have handled all events so far. */
async function caughtUp({ modules, subscriptions }: Platform): Promise<void> {
  for (const { name } of modules.reactors) {
    await until(`${name} has caught up`, async () => (await subscriptions.lag(name)).behind === 0);
  }
}

async function follow(
  who: Person,
  {
    chatId,
    workspaceId,
  }: { readonly chatId?: string | undefined; readonly workspaceId?: string | undefined },
): Promise<Screen> {
  const screen = who.connect();
  await screen.receive('connected');
  if (chatId !== undefined) {
    screen.send({ type: 'subscribe.chat', chatId });
    await screen.receive('subscribed.chat');
  }
  if (workspaceId !== undefined) {
    screen.send({ type: 'subscribe.workspace', workspaceId });
    await screen.receive('subscribed.workspace');
  }
  return screen;
}

/** All events of a flow, as soon as there are `count` of them. */
export async function eventsOf(
  { engines: { store } }: Platform,
  flow: string,
  count: number,
): Promise<readonly RecordedEvent[]> {
  let events: readonly RecordedEvent[] = [];
  await until(`${flow} has ${count} events`, async () => {
    const recorded = await Array.fromAsync(store.readAll());
    events = recorded.filter(({ correlationId }) => correlationId === flow);
    return events.length >= count;
  });
  return events;
}

/** Each event type with the type of the event that caused it. */
export function causesOf(events: readonly RecordedEvent[]): readonly string[] {
  const types = new Map(events.map(({ eventId, type }) => [eventId, type]));
  return events
    .map(({ type, causationId = '' }) => `${types.get(causationId) ?? 'a command'} → ${type}`)
    .toSorted();
}

async function isOneChain({ platform, zoe }: Cast, flow: string): Promise<void> {
  const chain = chainFor(2);
  const events = await eventsOf(platform, flow, chain.length);
  assert.deepEqual(causesOf(events), chain);
  const isBot = ({ payload }: RecordedEvent): boolean =>
    (payload as { authorId?: string }).authorId === 'bot';
  assert.deepEqual(
    new Set(events.filter((event) => !isBot(event)).map(({ user }) => user?.id)),
    new Set([zoe.name]),
  );
  const parsed = events.find(({ type }) => type === 'chat.tags-parsed.v1');
  assert.deepEqual((parsed?.payload as { commands?: unknown } | undefined)?.commands, [
    { type: 'ChangeStatusCommand', status: 'Done' },
  ]);
}

async function boardIsUpdated(
  { zoe, workspaceId, chatId }: Cast,
  screens: readonly Screen[],
): Promise<void> {
  for (const screen of screens) {
    const { position, timestamp, ...update } = await screen.receive('task.updated');
    assert.deepEqual(update, {
      type: 'task.updated',
      taskId: chatId,
      chatId,
      workspaceId,
      changes: { status: { old: 'In Progress', new: 'Done' } },
      changedBy: zoe.name,
    });
    assert.ok(position !== undefined && timestamp !== undefined);
  }
  const columns = async (): Promise<Record<string, string[]>> => {
    const { body } = await zoe.get<Board>(`/api/v1/workspaces/${workspaceId}/board`);
    return Object.fromEntries(
      body.columns.map(({ status, count, tasks }) => [
        `${status} ${count}`,
        tasks.map(({ taskId }) => taskId),
      ]),
    );
  };
  await until('the board shows the task as done', async () => 'Done 1' in (await columns()));
  const { 'Done 1': done, ...others } = await columns();
  assert.deepEqual(done, [chatId]);
  assert.deepEqual(new Set(Object.values(others).flat()), new Set());
}

interface Board {
  readonly columns: readonly {
    readonly status: string;
    readonly count: number;
    readonly tasks: readonly { readonly taskId: string }[];
  }[];
}

interface ChatMessage {
  readonly messageId: string;
  readonly authorId: string;
  readonly content: string;
  readonly inReplyTo?: string | undefined;
}

async function chatShows(
  { alex, chatId }: Cast,
  { screens, messageId }: { readonly screens: readonly Screen[]; readonly messageId: unknown },
): Promise<void> {
  const isReply = ({ message }: SocketMessage): boolean =>
    (message as ChatMessage).authorId === 'bot';
  for (const screen of screens) {
    const reply = (await screen.receive('chat.message.posted', isReply))['message'] as ChatMessage;
    assert.deepEqual([reply.content, reply.inReplyTo], ['✅ Status changed to Done', messageId]);
    const posted = screen.received.filter(({ type }) => type === 'chat.message.posted');
    assert.deepEqual(
      posted.map(({ message }) => (message as ChatMessage).content),
      [content, reply.content],
    );
  }
  let page: readonly ChatMessage[] = [];
  await until('the messages are in the list', async () => {
    const { body } = await alex.get<{ items: ChatMessage[] }>(
      `/api/v1/chats/${chatId}/messages?limit=2`,
    );
    page = body.items;
    return page[0]?.inReplyTo === messageId;
  });
  assert.equal(page[1]?.messageId, messageId);
}

async function othersAreNotified(
  { zoe, chatId, workspaceId }: Cast,
  {
    notified,
    notNotified,
  }: { readonly notified: ReadonlyMap<Person, Screen>; readonly notNotified: Screen },
): Promise<void> {
  for (const [who, screen] of notified) {
    const { notification } = await screen.receive('notification.new');
    const { notificationId, createdAt, ...notice } = notification as Record<string, unknown>;
    assert.deepEqual(notice, {
      userId: who.name,
      type: 'task.status_changed',
      title: 'Task status changed',
      message: 'Task status changed to Done',
      resourceId: chatId,
      workspaceId,
      chatId,
      readAt: null,
    });
    assert.ok(notificationId !== undefined && createdAt !== undefined);
    await until('the notification is listed', async () => {
      const { body } = await who.get('/api/v1/notifications');
      return body['unreadCount'] === 1;
    });
  }
  notNotified.send({ type: 'ping' });
  await notNotified.receive('pong');
  assert.ok(!notNotified.received.some(({ type }) => type === 'notification.new'));
  assert.equal((await zoe.get('/api/v1/notifications')).body['unreadCount'], 0);
}

async function mailIsSent({ platform, smtp }: Cast): Promise<void> {
  await smtp.whenReceived(1, AbortSignal.timeout(60_000));
  const outbox = outboxOf(platform);
  await until('the outbox has the mail as sent', async () => (await outbox.counts()).SENT === 1);
  const mails = smtp.messages();
  assert.deepEqual(
    mails.map(({ to }) => to),
    [['alex@example.org']],
  );
  assert.match(mails[0]?.source ?? '', /^Subject: Task status changed\r?$/m);
  assert.match(mails[0]?.source ?? '', /^Task status changed to Done\r?$/m);
  const { PENDING, CLAIMED, FAILED, DEAD } = await outbox.counts();
  assert.equal(PENDING + CLAIMED + FAILED + DEAD, 0);
}

/** The trace shows each node below its cause, and the mail at the end. */
async function traceIsShown({ admin }: Cast, flow: string): Promise<void> {
  let trace: Trace | undefined;
  await until('the trace is complete', async () => {
    const { status, body } = await admin.get<Trace>(`/admin/traces/${flow}?waitMs=30000`);
    trace = status === 200 ? body : undefined;
    return trace?.complete === true && trace.nodes.some(({ kind }) => kind === 'delivery');
  });
  const nodes = trace?.nodes ?? [];
  const names = new Map(nodes.map((node) => [node.id, nameOf(node)]));
  const parents = new Set(nodes.map(({ parent }) => parent));
  const tree = nodes
    .filter(({ kind, id }) => kind !== 'handler' || parents.has(id))
    .map((node) => `${names.get(node.parent ?? '') ?? ''} > ${nameOf(node)}`);
  assert.deepEqual(
    tree.toSorted(),
    [
      ' > chat.post-message',
      'chat.post-message > chat.message-posted.v1',
      'chat.message-posted.v1 > sub:collab:tag-parser:v1',
      'sub:collab:tag-parser:v1 > chat.record-tags',
      'chat.record-tags > chat.tags-parsed.v1',
      'chat.tags-parsed.v1 > sub:collab:command-executor:v1',
      'sub:collab:command-executor:v1 > task.apply-tags',
      'task.apply-tags > task.status-changed.v1',
      'task.apply-tags > task.tags-answered.v1',
      'task.tags-answered.v1 > sub:collab:bot:v1',
      'sub:collab:bot:v1 > chat.post-answer',
      'chat.post-answer > chat.message-posted.v1',
      'task.status-changed.v1 > sub:collab:notifier:v1',
      'sub:collab:notifier:v1 > notification.create',
      'sub:collab:notifier:v1 > notification.create',
      'notification.create > notification.created.v1',
      'notification.create > notification.created.v1',
      'notification.created.v1 > email:notification',
    ].toSorted(),
  );
}

function nameOf(node: TraceNode): string {
  if (node.kind === 'command') return node.command;
  if (node.kind === 'event') return node.type;
  if (node.kind === 'job') return node.job;
  if (node.kind === 'handler') return node.subscription;
  return node.kind === 'delivery' ? node.destination : node.id;
}

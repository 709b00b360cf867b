// The product is killed after each step of the event flow's story and started again: what follows from a
// message follows once, for the store, the chat, its screens and its mailboxes.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import { startChild, startSmtp, type Child } from '../../src/testing/index.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import { collab } from '../../modules/collab/index.ts';
import {
  personOf,
  type Answer,
  type Person,
  type Screen,
  type Told,
} from '../../modules/collab/testing/web-rig.ts';
import { createWorkspace, inTime, until } from '../store/rig.ts';
import type { CollabProductInput, Strike } from './collab-product-main.ts';
import { causesOf, chainFor, eventsOf } from './collab-scenario.ts';

const tenant = 'core';
/** One message for each; every one of them changes the status. */
const strikes: readonly (Strike & { readonly status: string })[] = [
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

test('a product that is killed after a step of the flow ends every flow once', async () => {
  await using workspace = await createWorkspace();
  await using smtp = await startSmtp();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await using reserved = await reservePort();
  const { host, port } = reserved;
  const input: CollabProductInput = { store, host, port, smtp: smtp.url };
  const start = async (strike?: Strike): Promise<Child> => {
    const script = new URL('./collab-product-main.ts', import.meta.url);
    const child = startChild(script, { input: { ...input, strike } });
    await child.message((said): said is 'started' => said === 'started');
    return child;
  };
  // Looks on, and does none of the work.
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
  const told: Told[] = [];
  let chatId = '';
  let workspaceId = '';

  let child: Child | undefined;
  /** A request without an answer is sent again, to the next process. */
  let posting: Promise<Answer> | undefined;
  try {
    for (const [index, strike] of strikes.entries()) {
      child = await start(strike);
      if (index === 0) ({ chatId, workspaceId } = await prepare(zoe, alex));
      assert.equal((await posting)?.status ?? 201, 201);
      using screen = await resume(alex, { chatId, workspaceId }, told);
      posting = post(zoe, { chatId, ...strike });
      assert.equal(await inTime(`it dies at ${strike.at}`, child.ended), 'SIGKILL');
      await screen.closed();
      told.push(...screen.told);
    }
    child = await start();
    assert.equal((await posting)?.status, 201);
    using screen = await resume(alex, { chatId, workspaceId }, told);
    await isOver(platform);
    await until('the screen shows it all', () => {
      const all = [...told, ...screen.told];
      const isAll = contentsOf(all).length >= strikes.length * 2;
      return isAll && changesIn(all).length >= strikes.length;
    });
    told.push(...screen.told);
    await everythingOnce(platform, { zoe, alex, chatId });
  } finally {
    await child?.kill();
  }

  assert.deepEqual(contentsOf(told).toSorted(), strikes.flatMap(saidIn).toSorted());
  assert.deepEqual(
    changesIn(told),
    strikes.map(({ status }, index) => ({
      status: { old: strikes[index - 1]?.status ?? 'To Do', new: status },
    })),
  );
  const ids = smtp.messages().map(({ source }) => /^Message-ID: (.+)$/im.exec(source)?.[1]);
  assert.equal(new Set(ids).size, strikes.length);
  assert.ok(
    ids.length > strikes.length,
    'the mail that was not settled went again, as the same one',
  );
});

async function prepare(
  zoe: Person,
  alex: Person,
): Promise<{ readonly chatId: string; readonly workspaceId: string }> {
  const preferences = { email: 'all' };
  await alex.send('PUT', '/api/v1/users/me', { email: 'alex@example.org', preferences });
  const made = await zoe.send('POST', '/api/v1/workspaces', { name: 'Mill' });
  const { workspaceId } = made.body as { workspaceId: string };
  await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/members`, { username: alex.name });
  const opened = await zoe.send('POST', `/api/v1/workspaces/${workspaceId}/chats`, {
    type: 'task',
    title: 'Wheel',
    participants: [alex.name],
  });
  const { chatId } = opened.body as { chatId: string };
  await until('there is a task', async () => {
    return (await zoe.get(`/api/v1/tasks/${chatId}`)).status === 200;
  });
  return { chatId, workspaceId };
}

/** As clients do: from what they saw last, or from now on. */
async function resume(
  who: Person,
  { chatId, workspaceId }: { readonly chatId: string; readonly workspaceId: string },
  told: readonly Told[],
): Promise<Screen> {
  const screen = who.connect();
  await screen.hear('connected');
  const lastOf = (types: RegExp): string | undefined =>
    told.findLast(({ type }) => types.test(type))?.position;
  const chatSince = lastOf(/^chat\.|^subscribed\.chat/);
  screen.say({ type: 'subscribe.chat', chatId, since: chatSince });
  await screen.hear('subscribed.chat');
  screen.say({ type: 'subscribe.workspace', workspaceId, since: lastOf(/^task\.|\.workspace$/) });
  await screen.hear('subscribed.workspace');
  return screen;
}

/** Until it is answered, each time as the same one. */
async function post(
  who: Person,
  { chatId, flow, status }: { chatId: string; flow: string; status: string },
): Promise<Answer> {
  let answer: Answer | undefined;
  await until(`${flow} is posted`, async () => {
    answer = await who
      .send(
        'POST',
        `/api/v1/chats/${chatId}/messages`,
        { content: contentOf({ flow, status }) },
        { 'idempotency-key': flow, 'x-correlation-id': flow },
      )
      .catch(() => undefined);
    return answer !== undefined;
  });
  return answer as Answer;
}

async function isOver(platform: Platform): Promise<void> {
  const chain = chainFor(1);
  for (const { flow } of strikes) {
    assert.deepEqual(causesOf(await eventsOf(platform, flow, chain.length)), chain);
  }
  await until('all mails are sent', async () => {
    const { SENT, PENDING, CLAIMED, FAILED } = await platform.engines.ledger.counts();
    return SENT === strikes.length && PENDING + CLAIMED + FAILED === 0;
  });
}

/** What queries show; and nothing more came while the rest was waited for. */
async function everythingOnce(
  platform: Platform,
  { zoe, alex, chatId }: { readonly zoe: Person; readonly alex: Person; readonly chatId: string },
): Promise<void> {
  const contents = async (): Promise<string[]> => {
    const path = `/api/v1/chats/${chatId}/messages?order=asc`;
    const { body } = await zoe.get<{ items: { content: string }[] }>(path);
    return body.items.map(({ content }) => content);
  };
  await until('all are listed', async () => (await contents()).length >= strikes.length * 2);
  assert.deepEqual((await contents()).toSorted(), strikes.flatMap(saidIn).toSorted());
  await until('all are notified', async () => {
    const { body } = await alex.get('/api/v1/notifications');
    return body['unreadCount'] === strikes.length;
  });
  for (const { flow } of strikes) {
    assert.deepEqual(causesOf(await eventsOf(platform, flow, 1)), chainFor(1));
  }
  assert.equal(await platform.engines.storage.deadLetters.count({}), 0);
  assert.equal((await platform.engines.ledger.counts()).DEAD, 0);
}

function contentOf({ flow, status }: { readonly flow: string; readonly status: string }): string {
  return `${flow}\n#status ${status}`;
}

/** The message, and what the bot says to it. */
function saidIn(strike: { readonly flow: string; readonly status: string }): readonly string[] {
  return [contentOf(strike), `✅ Status changed to ${strike.status}`];
}

function contentsOf(told: readonly Told[]): readonly string[] {
  return told
    .filter(({ type }) => type === 'chat.message.posted')
    .map(({ message }) => (message as { content: string }).content);
}

function changesIn(told: readonly Told[]): readonly unknown[] {
  return told.filter(({ type }) => type === 'task.updated').map(({ changes }) => changes);
}

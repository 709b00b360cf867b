// The collab module on SQLite with every commit synced: a task chat for each pair of people, and a short and a
// long discussion.

import {
  collab,
  createChat,
  createWorkspace,
  addMember,
  ensureUser,
  messagePosted,
} from '../../modules/collab/index.ts';
import { buildStreamName, createEnvelope, type NewCommand } from '../../src/contracts/index.ts';
import { createPlatform } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { ServedCollabInput, ServedCollabMessage } from './served-collab.ts';

const { file, pairs, messages } = childInput() as ServedCollabInput;
const tenant = 'core';
const workspaceId = 'w';
const shortChat = 100;
const appendedAtOnce = 1_000;

const platform = await createPlatform({
  engines: { store: `sqlite:${file}` },
  modules: [collab({ messagesPerMinute: Infinity })],
});
const send = (id: string, command: NewCommand): Promise<unknown> =>
  platform.handle({ tenant, id, command });
const { load } = platform;
const people = Array.from({ length: pairs * 2 }, (_, at) => `p${at}`);
const tokens: string[] = [];
for (const name of people) {
  tokens.push((await platform.tokens.create({ name, scopes: ['use'], tenant })).secret);
  await ensureUser(
    { send: (request) => platform.handle(request), load },
    { tenant, principal: name },
  );
}
await send(workspaceId, createWorkspace({ name: 'Bench', createdBy: 'p0', username: 'p0' }));
for (const userId of people.slice(1)) {
  await send(workspaceId, addMember({ userId, username: userId, role: 'member', by: 'p0' }));
}
const subject = { workspaceId, title: 'Chat', isPublic: true };
const chats = Array.from({ length: pairs }, (_, at) => {
  const tokensOf = [tokens[at * 2] ?? '', tokens[at * 2 + 1] ?? ''] as const;
  return { id: `c${at}`, tokens: tokensOf };
});
for (const [at, { id }] of chats.entries()) {
  const participants = [`p${at * 2 + 1}`];
  await send(id, createChat({ ...subject, type: 'task', createdBy: `p${at * 2}`, participants }));
}
for (const [id, count] of [
  ['short', shortChat],
  ['long', messages],
] as const) {
  await send(id, createChat({ ...subject, type: 'discussion', createdBy: 'p0', participants: [] }));
  await fill(id, count);
}
await platform.start();
const head = await platform.engines.store.head();
for (const each of platform.modules.projections) {
  await platform.waitFor(each, head, { timeoutMs: 600_000 });
}
for (const { name } of platform.modules.reactors) {
  while ((await platform.subscriptions.lag(name)).behind > 0) await platform.clock.sleep(20);
}
const unlimited = { perSecond: 1_000_000, burst: 1_000_000 };
const rateLimits = { known: unlimited, unknown: unlimited };
const { port } = await startApi(platform, { port: 0, rateLimits });
tellParent({ kind: 'listening', port, chats, workspaceId } satisfies ServedCollabMessage);

/** Appends the events of messages directly, many at once. */
async function fill(chatId: string, count: number): Promise<void> {
  const stream = buildStreamName('collab', 'chat', 1, tenant, chatId);
  const aggregate = { bc: 'collab', type: 'chat', id: chatId };
  const timestamp = new Date(0).toISOString();
  for (let from = 0; from < count; from += appendedAtOnce) {
    const length = Math.min(appendedAtOnce, count - from);
    const events = Array.from({ length }, (_, at) => {
      const messageId = `${chatId}-${from + at}`;
      const content = `message ${from + at} of a long talk`;
      const posted = messagePosted({ messageId, chatId, authorId: 'p0', content, timestamp });
      return createEnvelope(posted, { tenant, aggregate });
    });
    await platform.engines.store.append(stream, events);
  }
}

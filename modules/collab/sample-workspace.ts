// Something to look at in `millrace dev`: a workspace with three people in it, a discussion, a task and a bug.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import type { Platform } from 'millrace/platform';
import { createChat, postMessage } from './chat-events.ts';
import { ensureUser } from './ensure-user.ts';
import { changePreferences } from './user-events.ts';
import { addMember, createWorkspace } from './workspace-events.ts';

const people = ['ada', 'bob', 'eve'] as const;
type SamplePerson = (typeof people)[number];

const tenant = 'core';
const workspaceId = 'mill';

const chats = {
  general: { type: 'discussion', title: 'General' },
  wheel: { type: 'task', title: 'Mend the wheel' },
  leak: { type: 'bug', title: 'It drips at night' },
} as const;

const said: readonly (readonly [keyof typeof chats, SamplePerson, string])[] = [
  ['general', 'ada', 'Welcome. A line that begins with #task and a title makes a task of a chat.'],
  ['wheel', 'ada', 'Three paddles are gone.\n#assignee @bob #priority High #due 2027-03-01'],
  ['wheel', 'bob', 'I have the wood.\n#status In Progress'],
  ['leak', 'eve', 'Every night at two.\n#severity Minor #assignee @ada'],
  ['leak', 'ada', 'I will listen.\n#status Investigating'],
];

/** Sent again, all of it is recognised; the tokens are new ones then, and the old ones end. */
export async function sampleWorkspace({
  handle,
  load,
  tokens,
}: Pick<Platform, 'handle' | 'load' | 'tokens'>): Promise<ReadonlyMap<SamplePerson, string>> {
  const ask = (id: string, command: NewCommand, naturalKey = id): Promise<unknown> =>
    handle({
      tenant,
      id,
      command,
      idempotencyKey: buildIdempotencyKey({
        tenant,
        service: 'sample-data',
        operation: command.type.replace('.', '-'),
        naturalKey,
      }),
    });
  for (const principal of people) {
    const email = `${principal}@example.org`;
    await ensureUser({ send: handle, load }, { tenant, principal, email });
    await ask(principal, changePreferences({ email: 'all' }));
  }
  await ask(workspaceId, createWorkspace({ name: 'Mill', createdBy: 'ada', username: 'ada' }));
  for (const userId of ['bob', 'eve']) {
    const member = addMember({ userId, username: userId, role: 'member', by: 'ada' });
    await ask(workspaceId, member, userId);
  }
  for (const [id, subject] of Object.entries(chats)) {
    const chat = { ...subject, workspaceId, isPublic: true, createdBy: 'ada' };
    await ask(id, createChat({ ...chat, participants: [...people] }));
  }
  for (const [at, [chatId, authorId, content]] of said.entries()) {
    const messageId = `sample-${at}`;
    await ask(chatId, postMessage({ messageId, authorId, content }), messageId);
  }
  const secrets = new Map<SamplePerson, string>();
  const known = await tokens.list();
  for (const name of people) {
    const old = known.find((token) => token.name === name && token.revokedAt === undefined);
    if (old !== undefined) await tokens.revoke(old.id);
    secrets.set(name, (await tokens.create({ name, scopes: ['use'], tenant })).secret);
  }
  return secrets;
}

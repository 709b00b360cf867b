// The module as an application configures it: with e-mail if COLLAB_SMTP_URL names a server. `sample` adds a
// workspace with three people, a discussion, a task and a bug.

import { smtpDestination } from 'millrace/destinations/smtp';
import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import type { Platform, PlatformModule } from 'millrace/platform';
import { createChat, postMessage } from './chat-events.ts';
import { collab } from './collab.ts';
import { composeMail } from './notifications/notifier.ts';
import { changePreferences } from './user-events.ts';
import { ensureUser } from './user.ts';
import { addMember, createWorkspace } from './workspace-events.ts';

const people = ['ada', 'bob', 'eve'] as const;
type SamplePerson = (typeof people)[number];

const tenant = 'core';
const workspaceId = 'mill';

const chats = {
  general: { type: 'discussion', title: 'General' },
  wheel: { type: 'task', title: 'Repair the wheel' },
  leak: { type: 'bug', title: 'Water drips at night' },
} as const;

const messages: readonly (readonly [keyof typeof chats, SamplePerson, string])[] = [
  [
    'general',
    'ada',
    'Welcome. A line that starts with #task and a title turns a chat into a task.',
  ],
  ['wheel', 'ada', 'Three paddles are missing.\n#assignee @bob #priority High #due 2027-03-01'],
  ['wheel', 'bob', 'I have the wood.\n#status In Progress'],
  ['leak', 'eve', 'Every night at two.\n#severity Minor #assignee @ada'],
  ['leak', 'ada', 'I will listen tonight.\n#status Investigating'],
];

export async function demo(smtpUrl?: string): Promise<PlatformModule> {
  if (smtpUrl === undefined) return collab();
  const from = 'Mill <mill@example.org>';
  return collab({
    email: await smtpDestination({ transport: smtpUrl, from, compose: composeMail }),
  });
}

/** Creates the sample data once, and returns a new token per person; tokens of an earlier run are revoked. */
export async function sample({
  handle,
  load,
  tokens,
}: Pick<Platform, 'handle' | 'load' | 'tokens'>): Promise<ReadonlyMap<SamplePerson, string>> {
  const send = (id: string, command: NewCommand, naturalKey = id): Promise<unknown> =>
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
    await send(principal, changePreferences({ email: 'all' }));
  }
  await send(workspaceId, createWorkspace({ name: 'Mill', createdBy: 'ada', username: 'ada' }));
  for (const userId of ['bob', 'eve']) {
    const member = addMember({ userId, username: userId, role: 'member', by: 'ada' });
    await send(workspaceId, member, userId);
  }
  for (const [id, subject] of Object.entries(chats)) {
    const chat = { ...subject, workspaceId, isPublic: true, createdBy: 'ada' };
    await send(id, createChat({ ...chat, participants: [...people] }));
  }
  for (const [index, [chatId, authorId, content]] of messages.entries()) {
    const messageId = `sample-${index}`;
    await send(chatId, postMessage({ messageId, authorId, content }), messageId);
  }
  const secrets = new Map<SamplePerson, string>();
  const existing = await tokens.list();
  for (const name of people) {
    const active = existing.find((token) => token.name === name && token.revokedAt === undefined);
    if (active !== undefined) await tokens.revoke(active.id);
    secrets.set(name, (await tokens.create({ name, scopes: ['use'], tenant })).secret);
  }
  return secrets;
}

export default await demo(process.env['COLLAB_SMTP_URL']);

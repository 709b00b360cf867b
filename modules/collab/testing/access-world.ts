// Users with every role in a workspace and its chats, for tests of the access rules.

import type { NewCommand } from 'millrace/contracts';
import type { Platform } from 'millrace/platform';
import { createChat, joinChat, postMessage } from '../chat-events.ts';
import { createNotification } from '../notifications/notification-events.ts';
import { createTask } from '../tasks/task-events.ts';
import { addMember, createInvite, createWorkspace, removeMember } from '../workspace-events.ts';
import { newInviteToken } from '../workspace.ts';
import { personOf, type Person, type Rig } from './web-rig.ts';

const tenant = 'core';

/** From no access to full access. */
export const roles = [
  'anonymous',
  /** A user of another tenant, with the same name as an admin of this one. */
  'foreigner',
  /** A client of the same user whose requests name this tenant. */
  'intruder',
  /** Credentials of the tenant for machines that only read. */
  'reader',
  'stranger',
  /** A former member and former participant of both chats. */
  'removed',
  /** A member who participates in neither chat. */
  'member',
  /** An admin who participates in neither chat. */
  'admin',
  /** A participant of both chats, and the author of the messages. */
  'participant',
  /** The creator of both chats. */
  'owner',
] as const;
export type Role = (typeof roles)[number];

export interface World {
  readonly workspace: string;
  readonly open: string;
  readonly closed: string;
  readonly openMessage: string;
  readonly closedMessage: string;
  readonly notification: string;
  readonly invite: string;
  readonly inviteToken: string;
}

export async function castOf(rig: Rig): Promise<Readonly<Record<Role, Person>>> {
  const person = async (
    name: string,
    of = tenant,
    scope: 'read' | 'use' = 'use',
  ): Promise<Person> => {
    const { secret } = await rig.platform.tokens.create({ name, scopes: [scope], tenant: of });
    const known = personOf(rig.server, name, secret);
    // The first request registers the user, who can then become a member.
    await known.get('/api/v1/users/me');
    return known;
  };
  const foreigner = await person('foreigner', 'acme');
  const named = { 'x-tenant-id': tenant };
  return {
    anonymous: personOf(rig.server, 'anonymous', ''),
    foreigner,
    intruder: {
      ...foreigner,
      get: (path) => foreigner.send('GET', path, undefined, named),
      send: (method, path, body) => foreigner.send(method, path, body, named),
    },
    reader: await person('reader', tenant, 'read'),
    stranger: await person('stranger'),
    removed: await person('removed'),
    member: await person('member'),
    admin: await person('admin'),
    participant: await person('participant'),
    owner: await person('owner'),
  };
}

/** Sends commands instead of requests, because the tests need many worlds. */
export async function makeWorld(platform: Platform, name: string): Promise<World> {
  const send = (id: string, command: NewCommand): Promise<unknown> =>
    platform.handle({ tenant, id, command });
  const at = (what: string): string => `${name}-${what}`;
  const workspace = at('w');
  await send(workspace, createWorkspace({ name, createdBy: 'admin', username: 'admin' }));
  const join = (userId: string, role: 'admin' | 'member' = 'member'): Promise<unknown> =>
    send(workspace, addMember({ userId, username: userId, role, by: 'admin' }));
  for (const userId of ['owner', 'participant', 'member', 'guest', 'reader', 'removed'])
    await join(userId);
  // A user of this tenant with the name of the foreign user. With a second admin, the first one may leave.
  await join('foreigner', 'admin');
  const { token, ...invite } = newInviteToken({ workspaceId: workspace, inviteId: at('i') });
  const { inviteId, tokenHash } = invite;
  const expiresAt = new Date(platform.clock.now() + 3_600_000).toISOString();
  const offer = { inviteId, tokenHash, role: 'member', maxUses: 100, expiresAt } as const;
  await send(workspace, createInvite({ ...offer, by: 'admin' }));
  for (const [what, isPublic] of [
    ['open', true],
    ['closed', false],
  ] as const) {
    const subject = { workspaceId: workspace, title: what, isPublic, createdBy: 'owner' };
    const participants = ['participant', 'removed'];
    await send(at(what), createChat({ ...subject, type: 'discussion', participants }));
    const message = { messageId: at(`${what}-m`), authorId: 'participant', content: 'secret' };
    await send(at(what), postMessage(message));
    await send(at(what), joinChat({ userId: 'foreigner', role: 'admin', by: 'owner' }));
    await send(at(what), createTask({ ...subject, type: 'task' }));
  }
  await send(workspace, removeMember({ userId: 'removed', by: 'admin' }));
  await send(
    at('n'),
    createNotification({
      userId: 'participant',
      type: 'task.status_changed',
      title: 'secret',
      message: 'secret',
      resourceId: at('closed'),
      workspaceId: workspace,
      chatId: at('closed'),
      email: false,
    }),
  );
  return {
    workspace,
    open: at('open'),
    closed: at('closed'),
    openMessage: at('open-m'),
    closedMessage: at('closed-m'),
    notification: at('n'),
    invite: inviteId,
    inviteToken: token,
  };
}

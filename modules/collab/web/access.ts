// Access: the table of rules that routes and WebSocket share, and the lookup of the resource that a request names.
// A resource that the user may not see gets the same response as a missing one.

import { chatProjection, messageProjection, type MessageDocument } from '../chat-read-models.ts';
import type { ChatDocument, TaskDocument } from '../documents.ts';
import { taskProjection } from '../tasks/task-read-models.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { forbidden, notFound } from './collab-errors.ts';

export type WorkspaceRole = 'stranger' | 'member' | 'admin';
/**
 * A visitor is a member of the workspace who does not participate in a public chat. A private chat has no visitors:
 * admins of the workspace are strangers to it, too.
 */
export type ChatRole = 'stranger' | 'visitor' | 'participant' | 'chat-admin';

const members = ['member', 'admin'] as const;
const viewers = ['visitor', 'participant', 'chat-admin'] as const;

/** The roles that are allowed each action. */
export const accessRules = {
  'workspace.see': members,
  'workspace.leave': members,
  'member.add': ['admin'],
  'member.change-role': ['admin'],
  'member.remove': ['admin'],
  'invite.list': ['admin'],
  'invite.create': ['admin'],
  'invite.revoke': ['admin'],
  'chat.create': members,
  'chat.list': members,
  'task.list': members,
  'board.see': members,
  'chat.see': viewers,
  'chat.join': viewers,
  'chat.leave': ['participant', 'chat-admin'],
  'participant.add': ['chat-admin'],
  'participant.remove': ['chat-admin'],
  'message.list': viewers,
  'message.post': viewers,
  /** The chat aggregate limits participants to their own messages of the last five minutes. */
  'message.change': ['participant', 'chat-admin'],
  'chat.type': viewers,
  'task.see': viewers,
  'task.watch': viewers,
} as const satisfies Readonly<Record<string, readonly (ChatRole | WorkspaceRole)[]>>;

export type Action = keyof typeof accessRules;

/** `hidden`: respond as if the resource did not exist. */
export type AccessDecision = 'allowed' | 'forbidden' | 'hidden';

export function decideAccess(role: ChatRole | WorkspaceRole, action: Action): AccessDecision {
  if (role === 'stranger') return 'hidden';
  const allowed: readonly string[] = accessRules[action];
  return allowed.includes(role) ? 'allowed' : 'forbidden';
}

export function workspaceRole(
  workspace: WorkspaceDocument | undefined,
  userId: string,
): WorkspaceRole {
  return workspace?.members.find((member) => member.userId === userId)?.role ?? 'stranger';
}

/** A former member of the workspace is a stranger to its chats, also with a role in the chat. */
export function chatRole(
  chat: ChatDocument | undefined,
  workspace: WorkspaceDocument | undefined,
  userId: string,
): ChatRole {
  if (chat === undefined || workspaceRole(workspace, userId) === 'stranger') return 'stranger';
  const role = chat.participants.find((participant) => participant.userId === userId)?.role;
  if (role === undefined) return chat.isPublic ? 'visitor' : 'stranger';
  return role === 'admin' ? 'chat-admin' : 'participant';
}

interface User {
  readonly tenant: string;
  readonly userId: string;
}

interface ReachedChat {
  readonly chat: ChatDocument;
  readonly workspace: WorkspaceDocument;
}

/** Reads the documents that decide access. */
export interface AccessLookup {
  chat(tenant: string, id: string): Promise<ChatDocument | undefined>;
  workspace(tenant: string, id: string): Promise<WorkspaceDocument | undefined>;
}

/** Finds resources and checks the access of a user; throws `NOT_FOUND` or `NOT_ALLOWED`. */
export interface Reach {
  workspace(user: User, workspaceId: string, action: Action): Promise<WorkspaceDocument>;
  chat(user: User, chatId: string, action: Action): Promise<ReachedChat>;
}

/** Messages and tasks have the access rules of their chat. */
export interface ResourceReach extends Reach {
  message(user: User, messageId: string, action: Action): Promise<MessageDocument>;
  task(user: User, taskId: string, action: Action): Promise<TaskDocument>;
}

export function createReach(lookup: AccessLookup): Reach {
  return {
    chat: (user, chatId, action) => reachChat(lookup, user, { chatId, action, what: 'chat' }),
    async workspace({ tenant, userId }, workspaceId, action) {
      const workspace = await lookup.workspace(tenant, workspaceId);
      assertAllowed(decideAccess(workspaceRole(workspace, userId), action), 'workspace');
      if (workspace === undefined) throw notFound('workspace');
      return workspace;
    },
  };
}

export function createResourceReach({ fresh }: Pick<CollabDocuments, 'fresh'>): ResourceReach {
  const lookup: AccessLookup = {
    chat: (tenant, id) => fresh(chatProjection, tenant, id),
    workspace: (tenant, id) => fresh(workspaceProjection, tenant, id),
  };
  return {
    ...createReach(lookup),
    async message(user, id, action) {
      const message = await fresh(messageProjection, user.tenant, id);
      if (message === undefined) throw notFound('message');
      await reachChat(lookup, user, { chatId: message.chatId, action, what: 'message' });
      return message;
    },
    async task(user, id, action) {
      const task = await fresh(taskProjection, user.tenant, id);
      if (task === undefined) throw notFound('task');
      await reachChat(lookup, user, { chatId: task.chatId, action, what: 'task' });
      return task;
    },
  };
}

/** `what` names the requested resource, so the response does not reveal whether the chat exists. */
async function reachChat(
  lookup: AccessLookup,
  { tenant, userId }: User,
  target: { readonly chatId: string; readonly action: Action; readonly what: string },
): Promise<ReachedChat> {
  const { chatId, action, what } = target;
  const chat = await lookup.chat(tenant, chatId);
  const workspace =
    chat === undefined ? undefined : await lookup.workspace(tenant, chat.workspaceId);
  assertAllowed(decideAccess(chatRole(chat, workspace, userId), action), what);
  if (chat === undefined || workspace === undefined) throw notFound(what);
  return { chat, workspace };
}

function assertAllowed(decision: AccessDecision, what: string): void {
  if (decision === 'hidden') throw notFound(what);
  if (decision === 'forbidden') throw forbidden(`Your role in this ${what} does not allow this.`);
}

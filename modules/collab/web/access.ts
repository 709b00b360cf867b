// Access: the table of rules that routes and WebSocket share, and the lookup of what a request names.

import {
  type ChatDocument,
  chatProjection,
  messageProjection,
  type MessageDocument,
} from '../chat-read-models.ts';
import { type WorkspaceDocument, workspaceProjection } from '../workspace.ts';
import { taskProjection, type TaskDocument } from '../tasks/task-read-models.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { forbidden, notFound } from './collab-errors.ts';
import type { WebUser } from './endpoints.ts';

/** What somebody is to a workspace. */
export type WorkspaceRole = 'stranger' | 'member' | 'admin';
/**
 * What somebody is to a chat. A visitor is a member of the workspace and does not take part in a public
 * chat; a private one is strange to all who do not take part, admins of the workspace among them.
 */
export type ChatRole = 'stranger' | 'visitor' | 'participant' | 'chat-admin';

const members = ['member', 'admin'] as const;
const seers = ['visitor', 'participant', 'chat-admin'] as const;

/** Who may; the first column of a workspace or a chat says who knows that it is there. */
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
  'chat.see': seers,
  'chat.join': seers,
  'chat.leave': ['participant', 'chat-admin'],
  'participant.add': ['chat-admin'],
  'participant.remove': ['chat-admin'],
  'message.list': seers,
  'message.post': seers,
  /** Of somebody else, or later than five minutes, is an admin's: the chat itself decides that. */
  'message.change': ['participant', 'chat-admin'],
  'chat.type': seers,
  'task.see': seers,
  'task.watch': seers,
} as const satisfies Readonly<Record<string, readonly (ChatRole | WorkspaceRole)[]>>;

export type Action = keyof typeof accessRules;

/** `hidden`: as if it were not there. */
export type AccessDecision = 'allowed' | 'forbidden' | 'hidden';

export function decideAccess(role: ChatRole | WorkspaceRole, action: Action): AccessDecision {
  if (role === 'stranger') return 'hidden';
  const may: readonly string[] = accessRules[action];
  return may.includes(role) ? 'allowed' : 'forbidden';
}

export function workspaceRole(
  workspace: WorkspaceDocument | undefined,
  userId: string,
): WorkspaceRole {
  return workspace?.members.find((each) => each.userId === userId)?.role ?? 'stranger';
}

/** Whoever has left the workspace is a stranger to its chats, whatever they were in them. */
export function chatRole(
  chat: ChatDocument | undefined,
  workspace: WorkspaceDocument | undefined,
  userId: string,
): ChatRole {
  if (chat === undefined || workspaceRole(workspace, userId) === 'stranger') return 'stranger';
  const role = chat.participants.find((each) => each.userId === userId)?.role;
  if (role === undefined) return chat.isPublic ? 'visitor' : 'stranger';
  return role === 'admin' ? 'chat-admin' : 'participant';
}

interface ReachedChat {
  readonly chat: ChatDocument;
  readonly workspace: WorkspaceDocument;
}

type Someone = Pick<WebUser, 'tenant' | 'userId'>;

export interface Reach {
  workspace(who: Someone, workspaceId: string, action: Action): Promise<WorkspaceDocument>;
  chat(who: Someone, chatId: string, action: Action): Promise<ReachedChat>;
  /** By the chat that it is in. */
  message(who: Someone, messageId: string, action: Action): Promise<MessageDocument>;
  task(who: Someone, taskId: string, action: Action): Promise<TaskDocument>;
}

export function createReach({ fresh }: Pick<CollabDocuments, 'fresh'>): Reach {
  /** `what` is asked for: nobody is told whether that, or only its chat, is not there. */
  const inChat = async (
    { tenant, userId }: Someone,
    action: Action,
    { chatId, what }: { readonly chatId: string; readonly what: string },
  ): Promise<ReachedChat> => {
    const chat = await fresh(chatProjection, tenant, chatId);
    const workspace =
      chat === undefined ? undefined : await fresh(workspaceProjection, tenant, chat.workspaceId);
    obey(decideAccess(chatRole(chat, workspace, userId), action), what);
    if (chat === undefined || workspace === undefined) throw notFound(what);
    return { chat, workspace };
  };
  return {
    chat: (who, chatId, action) => inChat(who, action, { chatId, what: 'chat' }),
    async workspace({ tenant, userId }, workspaceId, action) {
      const found = await fresh(workspaceProjection, tenant, workspaceId);
      obey(decideAccess(workspaceRole(found, userId), action), 'workspace');
      if (found === undefined) throw notFound('workspace');
      return found;
    },
    async message(who, id, action) {
      const found = await fresh(messageProjection, who.tenant, id);
      if (found === undefined) throw notFound('message');
      await inChat(who, action, { chatId: found.chatId, what: 'message' });
      return found;
    },
    async task(who, id, action) {
      const found = await fresh(taskProjection, who.tenant, id);
      if (found === undefined) throw notFound('task');
      await inChat(who, action, { chatId: found.chatId, what: 'task' });
      return found;
    },
  };
}

export function obey(decision: AccessDecision, what: string): void {
  if (decision === 'hidden') throw notFound(what);
  if (decision === 'forbidden') throw forbidden(`your role in this ${what} does not allow that`);
}

// Who may do what: one table, which the routes and the WebSocket ask.

import type { ChatDocument } from '../chat-projection.ts';
import type { WorkspaceDocument } from '../workspace-projection.ts';

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

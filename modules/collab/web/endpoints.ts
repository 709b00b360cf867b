// Every route of the module, and which rule of the access table it asks: routes are made from these rows.

import type { Method } from 'millrace/platform';
import type { Action } from './access-rules.ts';

export interface Endpoint {
  readonly method: Method;
  readonly path: string;
  /** `own`: about the caller, whoever that is. */
  readonly rule: Action | 'own';
}

const row = <Rule extends Endpoint['rule']>(method: Method, path: string, rule: Rule) => ({
  method,
  path: `/api/v1${path}`,
  rule,
});

export const endpoints = {
  getMe: row('GET', '/users/me', 'own'),
  changeMe: row('PUT', '/users/me', 'own'),

  createWorkspace: row('POST', '/workspaces', 'own'),
  listWorkspaces: row('GET', '/workspaces', 'own'),
  getWorkspace: row('GET', '/workspaces/{w}', 'workspace.see'),
  listMembers: row('GET', '/workspaces/{w}/members', 'workspace.see'),
  addMember: row('POST', '/workspaces/{w}/members', 'member.add'),
  changeMemberRole: row('PUT', '/workspaces/{w}/members/{userId}', 'member.change-role'),
  /** Of oneself: `workspace.leave`. */
  removeMember: row('DELETE', '/workspaces/{w}/members/{userId}', 'member.remove'),
  listInvites: row('GET', '/workspaces/{w}/invites', 'invite.list'),
  createInvite: row('POST', '/workspaces/{w}/invites', 'invite.create'),
  revokeInvite: row('DELETE', '/workspaces/{w}/invites/{inviteId}', 'invite.revoke'),
  useInvite: row('POST', '/invite/{token}', 'own'),

  createChat: row('POST', '/workspaces/{w}/chats', 'chat.create'),
  listChats: row('GET', '/workspaces/{w}/chats', 'chat.list'),
  getChat: row('GET', '/chats/{id}', 'chat.see'),
  listParticipants: row('GET', '/chats/{id}/participants', 'chat.see'),
  /** Of oneself: `chat.join`. */
  addParticipant: row('POST', '/chats/{id}/participants', 'participant.add'),
  /** Of oneself: `chat.leave`. */
  removeParticipant: row('DELETE', '/chats/{id}/participants/{userId}', 'participant.remove'),

  listMessages: row('GET', '/chats/{id}/messages', 'message.list'),
  postMessage: row('POST', '/chats/{id}/messages', 'message.post'),
  editMessage: row('PUT', '/messages/{id}', 'message.change'),
  deleteMessage: row('DELETE', '/messages/{id}', 'message.change'),

  listTasks: row('GET', '/workspaces/{w}/tasks', 'task.list'),
  getBoard: row('GET', '/workspaces/{w}/board', 'board.see'),
  getTask: row('GET', '/tasks/{id}', 'task.see'),
  watchTask: row('PUT', '/tasks/{id}/watch', 'task.watch'),
  unwatchTask: row('DELETE', '/tasks/{id}/watch', 'task.watch'),

  listNotifications: row('GET', '/notifications', 'own'),
  readNotification: row('PUT', '/notifications/{id}/read', 'own'),
  deleteNotification: row('DELETE', '/notifications/{id}', 'own'),
} as const satisfies Readonly<Record<string, Endpoint>>;

export type EndpointName = keyof typeof endpoints;

/** The same messages under the path of the event flow's document. */
export const aliases = {
  listMessages: '/api/chats/{id}/messages',
  postMessage: '/api/chats/{id}/messages',
} as const satisfies Partial<Readonly<Record<EndpointName, string>>>;

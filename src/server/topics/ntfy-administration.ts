// Requests of administrators: the server's version, users, and access rules.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  removeAccess,
  removeUser,
  setAccess,
  setUser,
  shownUsers,
} from '../../topics/users/change-users.ts';
import { ntfyError } from '../../topics/ntfy-problems.ts';
import type { UserDirectory } from '../../topics/users/user-directory.ts';
import { readJsonObject } from '../../topics/request-params.ts';
import { filterText, type AuditLog } from '../../platform/audit-log.ts';
import type { Visitor } from './ntfy-visitor.ts';
import { sendJson } from './ntfy-response.ts';
import { peekBody } from './ntfy-body.ts';
import type { NtfyRoute } from './ntfy-route.ts';

export type AdminAction = Extract<NtfyRoute, { readonly kind: 'administration' }>['action'];

/** ntfy's limit. */
const bodyBytesMax = 131_072;

export async function administer(
  action: AdminAction,
  {
    request,
    response,
    visitor: { user },
    directory,
    version,
    audit,
  }: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly visitor: Visitor;
    readonly directory: UserDirectory;
    readonly version: string;
    readonly audit: Pick<AuditLog, 'run'> | undefined;
  },
): Promise<void> {
  if (action === 'version') {
    return sendJson(response, JSON.stringify({ version, commit: '', date: '' }));
  }
  if (action === 'list-users') return sendJson(response, JSON.stringify(shownUsers(directory)));
  const { head, isCut } = await peekBody(request, bodyBytesMax);
  if (isCut) throw ntfyError('jsonTooLarge');
  const decision = await decisionOf(action, head, directory);
  const work = (): Promise<void> => directory.change(decision);
  const { username, topic } = readJsonObject(head);
  const target = filterText({ username, topic });
  // Only platform tokens have a permission for all topics.
  const kind = user?.permission === undefined ? 'topic-user' : 'token';
  const actor = { kind, name: user?.name ?? '', address: request.socket.remoteAddress ?? '' };
  await (audit?.run({ action: `topics.${action}`, target, actor }, work) ?? work());
  sendJson(response, '{"success":true}');
}

async function decisionOf(
  action: Exclude<AdminAction, 'version' | 'list-users'>,
  body: Buffer,
  book: UserDirectory,
): Promise<Parameters<UserDirectory['change']>[0]> {
  switch (action) {
    case 'add-user':
      return setUser(body, { isNew: true, book });
    case 'change-user':
      return setUser(body, { isNew: false, book });
    case 'remove-user':
      return removeUser(body);
    case 'set-access':
      return setAccess(body);
    case 'remove-access':
    default:
      return removeAccess(body);
  }
}

// What administrators ask: which version this is, who the users are and what they may.

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  removeAccess,
  removeUser,
  setAccess,
  setUser,
  shownUsers,
} from '../../notify/change-users.ts';
import { refused } from '../../notify/ntfy-problems.ts';
import type { UserDirectory } from '../../notify/user-directory.ts';
import { answerJson } from './ntfy-answer.ts';
import { peekBody } from './ntfy-body.ts';
import type { NtfyRoute } from './ntfy-route.ts';

export type AdministrationDeed = Extract<NtfyRoute, { readonly kind: 'administration' }>['deed'];

/** ntfy's own. */
const bodyBytesMax = 131_072;

export async function administer(
  deed: AdministrationDeed,
  {
    request,
    response,
    directory,
    version,
  }: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly directory: UserDirectory;
    readonly version: string;
  },
): Promise<void> {
  if (deed === 'version') {
    return answerJson(response, JSON.stringify({ version, commit: '', date: '' }));
  }
  if (deed === 'list-users') return answerJson(response, JSON.stringify(shownUsers(directory)));
  const { head, isCut } = await peekBody(request, bodyBytesMax);
  if (isCut) throw refused('jsonTooLarge');
  await directory.change(await decisionOf(deed, head, directory));
  answerJson(response, '{"success":true}');
}

async function decisionOf(
  deed: Exclude<AdministrationDeed, 'version' | 'list-users'>,
  body: Buffer,
  book: UserDirectory,
): Promise<Parameters<UserDirectory['change']>[0]> {
  switch (deed) {
    case 'add-user':
      return setUser(body, { isNew: true, book });
    case 'change-user':
      return setUser(body, { isNew: false, book });
    case 'remove-user':
      return removeUser(body);
    case 'allow':
      return setAccess(body);
    case 'reset':
    default:
      return removeAccess(body);
  }
}

// Turns administrators' requests of ntfy's API into changes of users and rules. Pure, except for hashing.

import { hashNotifyPassword, isPasswordHash } from './notify-password.ts';
import { ntfyError } from '../ntfy-problems.ts';
import { readJsonObject, textField } from '../request-params.ts';
import { compareAccess, everybody, type TopicPermission } from './access-rules.ts';
import { isUserName } from './notify-users.ts';
import type { DirectoryUser, UserBook, UserChange } from './user-directory.ts';

type Decision = (book: UserBook) => UserChange;

const topicPattern = /^[-_*A-Za-z0-9]{1,64}$/;

const permissions: Readonly<Record<string, TopicPermission>> = {
  'read-write': 'read-write',
  rw: 'read-write',
  'read-only': 'read-only',
  read: 'read-only',
  ro: 'read-only',
  'write-only': 'write-only',
  write: 'write-only',
  wo: 'write-only',
  'deny-all': 'deny',
  deny: 'deny',
  none: 'deny',
};

/** `isNew`: an existing user is rejected instead of getting another password. */
export async function setUser(
  body: Buffer,
  { isNew, book }: { readonly isNew: boolean; readonly book: UserBook },
): Promise<Decision> {
  const { username, password, hash, tier } = textsOf(body, [
    'username',
    'password',
    'hash',
    'tier',
  ]);
  const hasSecret = password !== '' || hash !== '';
  if (!isUserName(username)) throw invalid('username invalid');
  if (isNew && !hasSecret) throw invalid('username invalid, or password/password_hash missing');
  if (!hasSecret && tier === '') {
    throw invalid('need to provide at least one of "password", "password_hash" or "tier"');
  }
  // Checked before the slow hash, and again when the change is made.
  checkSettable(book.find(username), isNew);
  if (tier !== '') throw ntfyError('tierUnknown');
  if (hash !== '' && !isPasswordHash(hash)) throw invalid('password hash invalid');
  const passwordHash = hash === '' ? await hashNotifyPassword(password) : hash;
  return (now) => {
    checkSettable(now.find(username), isNew);
    return { kind: 'user-set', name: username, passwordHash };
  };
}

function checkSettable(found: DirectoryUser | undefined, isNew: boolean): void {
  if (found === undefined) return;
  if (isNew) throw ntfyError('userExists');
  if (found.role === 'admin') throw ntfyError('forbidden');
  if (found.isProvisioned) throw ntfyError('userProvisioned');
}

export function removeUser(body: Buffer): Decision {
  const { username: name } = textsOf(body, ['username']);
  return (book) => {
    const found = book.find(name);
    if (found === undefined) throw ntfyError('userUnknown');
    if (found.role === 'admin') throw ntfyError('unauthorized');
    if (found.isProvisioned) throw ntfyError('userProvisioned');
    return { kind: 'user-removed', name };
  };
}

export function setAccess(body: Buffer): Decision {
  const { username, topic, permission } = textsOf(body, ['username', 'topic', 'permission']);
  const allowed = permissions[permission.toLowerCase()];
  return (book) => {
    checkKnown(book, username);
    if (allowed === undefined) throw ntfyError('permissionInvalid');
    if (!topicPattern.test(topic)) throw ntfyError('topicInvalid');
    return { kind: 'access-set', user: username, topic, permission: allowed };
  };
}

export function removeAccess(body: Buffer): Decision {
  const { username, topic } = textsOf(body, ['username', 'topic']);
  return (book) => {
    checkKnown(book, username);
    if (topic !== '' && !topicPattern.test(topic)) throw ntfyError('topicInvalid');
    return { kind: 'access-removed', user: username, ...(topic === '' ? {} : { topic }) };
  };
}

function checkKnown(book: UserBook, name: string): void {
  if (name !== everybody && book.find(name) === undefined) throw ntfyError('userUnknown');
}

/** Users in ntfy's order, administrators first and everybody last, with their grants. */
export function shownUsers(book: UserBook): readonly Readonly<Record<string, unknown>>[] {
  const named = book.users.map(({ name, role }) => ({ username: name, role: role as string }));
  const roles = ['admin', 'user', 'anonymous'];
  return [...named, { username: everybody, role: 'anonymous' }]
    .toSorted(
      (a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || (a.username < b.username ? -1 : 1),
    )
    .map((each) => {
      const grants = grantsOf(book, each.username);
      return { ...each, grants: grants.length === 0 ? undefined : grants };
    });
}

function grantsOf(book: UserBook, name: string): readonly Readonly<Record<string, string>>[] {
  return book.rules
    .filter(({ user = everybody }) => user === name)
    .toSorted(
      (a, b) =>
        b.topic.length - a.topic.length ||
        compareAccess(a, b, 'write') ||
        compareAccess(a, b, 'read') ||
        (a.topic < b.topic ? -1 : 1),
    )
    .map(({ topic, permission }) => ({
      topic,
      permission: permission === 'deny' ? 'deny-all' : permission,
    }));
}

function textsOf<Name extends string>(
  body: Buffer,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  const given = readJsonObject(body);
  const entries = names.map((name) => [name, textField(given, name)]);
  return Object.fromEntries(entries) as Record<Name, string>;
}

function invalid(reason: string): Error {
  return ntfyError('invalid', reason);
}

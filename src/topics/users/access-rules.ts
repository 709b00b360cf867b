// Which users may read and write which topics, by ntfy's rules. Pure.

import { matchesGlob } from '../../foundation/matches-glob.ts';

export type TopicPermission = 'read-write' | 'read-only' | 'write-only' | 'deny';

export interface AccessRule {
  /** Absent, or `*`: all users, including those without credentials. */
  readonly user?: string | undefined;
  /** A topic, or a pattern in which `*` is any number of characters. */
  readonly topic: string;
  readonly permission: TopicPermission;
}

/** The authenticated user of a request. */
export interface NotifyUser {
  readonly name: string;
  readonly role: 'admin' | 'user';
  /** For a platform token: what its scopes allow, on every topic. */
  readonly permission?: TopicPermission | undefined;
  /** Fires when that token is revoked or expires. */
  readonly ended?: AbortSignal | undefined;
}

export interface AccessBook {
  may(user: NotifyUser | undefined, topic: string, wanted: 'read' | 'write'): boolean;
}

/** The user of rules for all users. */
export const everybody = '*';

export function createAccessBook(
  directory: { readonly version: number; readonly rules: readonly AccessRule[] },
  defaultAccess: TopicPermission,
): AccessBook {
  let version = directory.version;
  let compiled = compileRules(directory.rules);
  return {
    may(user, topic, wanted) {
      if (user?.role === 'admin') return true;
      if (user?.permission !== undefined) return allows(user.permission, wanted);
      if (version !== directory.version) {
        ({ version } = directory);
        compiled = compileRules(directory.rules);
      }
      const rule = compiled.find(
        (each) =>
          (each.user === everybody || each.user === user?.name) && matchesGlob(each.pattern, topic),
      );
      return allows(rule?.permission ?? defaultAccess, wanted);
    },
  };
}

interface CompiledRule {
  readonly user: string;
  readonly pattern: string;
  readonly permission: TopicPermission;
}

function compileRules(rules: readonly AccessRule[]): readonly CompiledRule[] {
  return (
    rules
      .map(({ user = everybody, topic, permission }) => ({
        user,
        pattern: topic,
        permission,
      }))
      // A rule for the user goes before one for everybody, then the longer pattern, then the one that allows writing.
      .toSorted(
        (a, b) =>
          Number(a.user === everybody) - Number(b.user === everybody) ||
          b.pattern.length - a.pattern.length ||
          compareAccess(a, b, 'write'),
      )
  );
}

/** Rules that allow this kind of access come first. */
export function compareAccess(
  a: Pick<AccessRule, 'permission'>,
  b: Pick<AccessRule, 'permission'>,
  wanted: 'read' | 'write',
): number {
  return Number(allows(b.permission, wanted)) - Number(allows(a.permission, wanted));
}

function allows(permission: TopicPermission, wanted: 'read' | 'write'): boolean {
  if (permission === 'read-write') return true;
  return permission === (wanted === 'read' ? 'read-only' : 'write-only');
}

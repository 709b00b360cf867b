// Who may read and write which topics: ntfy's rules. Pure.

export type TopicPermission = 'read-write' | 'read-only' | 'write-only' | 'deny';

export interface AccessRule {
  /** Absent, or `*`: everybody, those without credentials among them. */
  readonly user?: string;
  /** A topic, or a pattern in which `*` is any number of characters. */
  readonly topic: string;
  readonly permission: TopicPermission;
}

/** Who asks. Absent: nobody that is known. */
export interface NotifyUser {
  readonly name: string;
  readonly role: 'admin' | 'user';
  /** Of one of our own tokens: what its scopes allow, on every topic. */
  readonly permission?: TopicPermission;
}

export interface AccessBook {
  may(user: NotifyUser | undefined, topic: string, wanted: 'read' | 'write'): boolean;
}

const everybody = '*';

export function createAccessBook(
  rules: readonly AccessRule[],
  defaultAccess: TopicPermission,
): AccessBook {
  const compiled = rules
    .map(({ user = everybody, topic, permission }) => ({
      user,
      pattern: patternOf(topic),
      length: topic.length,
      permission,
    }))
    // The user's own rule before everybody's, then the longer pattern, then the one that lets write.
    .toSorted(
      (a, b) =>
        Number(a.user === everybody) - Number(b.user === everybody) ||
        b.length - a.length ||
        Number(allows(b.permission, 'write')) - Number(allows(a.permission, 'write')),
    );
  return {
    may(user, topic, wanted) {
      if (user?.role === 'admin') return true;
      if (user?.permission !== undefined) return allows(user.permission, wanted);
      const rule = compiled.find(
        (each) => (each.user === everybody || each.user === user?.name) && each.pattern.test(topic),
      );
      return allows(rule?.permission ?? defaultAccess, wanted);
    },
  };
}

function allows(permission: TopicPermission, wanted: 'read' | 'write'): boolean {
  if (permission === 'read-write') return true;
  return permission === (wanted === 'read' ? 'read-only' : 'write-only');
}

function patternOf(topic: string): RegExp {
  const parts = topic.split('*').map((part) => part.replace(/[^\w-]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}

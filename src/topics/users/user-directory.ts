// Users of topics and access rules, in memory: fixed ones from the configuration, and those that administrators
// added.

import { ntfyError } from '../ntfy-problems.ts';
import { everybody, type AccessRule, type TopicPermission } from './access-rules.ts';
import type { NotifyUserSettings } from './notify-users.ts';

/** An administrator's change. */
export type UserChange =
  /** Adds a user, or changes the password. */
  | { readonly kind: 'user-set'; readonly name: string; readonly passwordHash: string }
  /** Removes the user's rules as well. */
  | { readonly kind: 'user-removed'; readonly name: string }
  | {
      readonly kind: 'access-set';
      readonly user: string;
      readonly topic: string;
      readonly permission: TopicPermission;
    }
  /** Without a topic: all rules of the user. Without a user: rules of all users. */
  | {
      readonly kind: 'access-removed';
      readonly user?: string | undefined;
      readonly topic?: string | undefined;
    };

export interface DirectoryUser extends NotifyUserSettings {
  readonly role: 'admin' | 'user';
  /** From the configuration: administrators cannot change it. */
  readonly isProvisioned: boolean;
}

export interface UserBook {
  /** Increases with every change. */
  readonly version: number;
  readonly users: readonly DirectoryUser[];
  readonly rules: readonly AccessRule[];
  find(name: string): DirectoryUser | undefined;
}

export interface UserDirectory extends UserBook {
  /** Decides on the current state; the change applies once it is stored. */
  change(decide: (book: UserBook) => UserChange): Promise<void>;
  /** Called after each change, also of another process. */
  onChanged(listener: () => void): void;
}

const directoryLimits = { usersMax: 10_000, rulesMax: 50_000 } as const;

/** The state of a directory: `change` of a directory stores a change, `apply` makes it visible. */
export interface UserBookWriter extends UserBook, Pick<UserDirectory, 'onChanged'> {
  apply(change: UserChange): void;
  /** Keeps only the users of the configuration. */
  removeAdded(): void;
}

export function createUserBook(options: {
  readonly users?: readonly NotifyUserSettings[] | undefined;
  readonly access?: readonly AccessRule[] | undefined;
}): UserBookWriter {
  const users = new Map<string, DirectoryUser>();
  for (const each of options.users ?? []) {
    users.set(each.name, { ...each, role: each.role ?? 'user', isProvisioned: true });
  }
  const provisioned = options.access ?? [];
  const added = new Map<string, AccessRule>();
  let rules: readonly AccessRule[] = provisioned;
  let version = 0;
  const listeners: (() => void)[] = [];

  function notify(): void {
    version += 1;
    for (const listener of listeners) listener();
  }

  function removeRules(matches: (rule: AccessRule) => boolean): void {
    for (const [key, rule] of added) if (matches(rule)) added.delete(key);
  }

  return {
    get version() {
      return version;
    },
    get users() {
      return [...users.values()];
    },
    get rules() {
      return rules;
    },
    find: (name) => users.get(name),
    apply(change) {
      switch (change.kind) {
        case 'user-set': {
          const { name, passwordHash } = change;
          // The configuration may have added the user since; it has precedence.
          if (users.get(name)?.isProvisioned === true) break;
          users.set(name, { name, passwordHash, role: 'user', isProvisioned: false });
          break;
        }
        case 'user-removed':
          if (users.get(change.name)?.isProvisioned === true) break;
          users.delete(change.name);
          removeRules(({ user }) => user === change.name);
          break;
        case 'access-set': {
          const { user, topic, permission } = change;
          added.set(`${user}\0${topic}`, { user, topic, permission });
          break;
        }
        case 'access-removed':
        default:
          removeRules(
            ({ user, topic }) =>
              (change.user === undefined || change.user === user) &&
              (change.topic === undefined || change.topic === topic),
          );
      }
      // A rule of an administrator replaces the configured rule for the same user and topic.
      const isReplaced = ({ user = everybody, topic }: AccessRule): boolean =>
        added.has(`${user}\0${topic}`);
      rules = [...provisioned.filter((rule) => !isReplaced(rule)), ...added.values()];
      notify();
    },
    removeAdded() {
      for (const { name, isProvisioned } of users.values()) {
        if (!isProvisioned) users.delete(name);
      }
      notify();
    },
    onChanged: (listener) => void listeners.push(listener),
  };
}

/** For servers without a store: changes are lost with the process. */
export function memoryUserDirectory(
  options: Parameters<typeof createUserBook>[0] = {},
): UserDirectory {
  const book = createUserBook(options);
  return Object.assign(book, {
    async change(decide: (book: UserBook) => UserChange) {
      const change = decide(book);
      checkRoom(book, change);
      book.apply(change);
    },
  });
}

export function checkRoom(book: UserBook, change: UserChange): void {
  const { usersMax, rulesMax } = directoryLimits;
  const isFull =
    (change.kind === 'user-set' && book.users.length >= usersMax) ||
    (change.kind === 'access-set' && book.rules.length >= rulesMax);
  if (!isFull) return;
  throw ntfyError('invalid', `limit reached: ${usersMax} users or ${rulesMax} access rules`);
}

// Users of topics and what they may: those of the configuration, which stay as they are, and those that
// administrators added. Pure but for what it holds.

import { MillraceError } from '../foundation/error.ts';
import type { AccessRule, TopicPermission } from './access-rules.ts';
import type { NotifyUserSettings } from './notify-users.ts';

/** What an administrator did. */
export type UserChange =
  /** New, or with another password. */
  | { readonly kind: 'user-set'; readonly name: string; readonly passwordHash: string }
  /** With everything that it may. */
  | { readonly kind: 'user-removed'; readonly name: string }
  | {
      readonly kind: 'access-set';
      readonly user: string;
      readonly topic: string;
      readonly permission: TopicPermission;
    }
  /** Without a topic: all of the user's. Without a user: everybody's. */
  | { readonly kind: 'access-removed'; readonly user?: string; readonly topic?: string };

export interface DirectoryUser extends NotifyUserSettings {
  readonly role: 'admin' | 'user';
  /** Of the configuration: nobody changes it here. */
  readonly isProvisioned: boolean;
}

export interface UserBook {
  /** Grows with every change. */
  readonly version: number;
  readonly users: readonly DirectoryUser[];
  readonly rules: readonly AccessRule[];
  find(name: string): DirectoryUser | undefined;
}

export interface UserDirectory extends UserBook {
  /** Decides on all that is known, and is stored before it counts. */
  change(decide: (book: UserBook) => UserChange): Promise<void>;
  /** Told after each change, whoever made it. */
  onChanged(listener: () => void): void;
}

const directoryLimits = { usersMax: 10_000, rulesMax: 50_000 } as const;

export const everybody = '*';

export function createUserBook(options: {
  readonly users?: readonly NotifyUserSettings[];
  readonly access?: readonly AccessRule[];
}): UserBook & { apply(change: UserChange): void } {
  const users = new Map<string, DirectoryUser>();
  for (const each of options.users ?? []) {
    users.set(each.name, { ...each, role: each.role ?? 'user', isProvisioned: true });
  }
  const provisioned = options.access ?? [];
  const added = new Map<string, AccessRule>();
  let rules: readonly AccessRule[] = provisioned;
  let version = 0;

  function removeRules(isMeant: (rule: AccessRule) => boolean): void {
    for (const [key, rule] of added) if (isMeant(rule)) added.delete(key);
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
          // A configuration that names it by now is what counts.
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
      // What administrators say of a user and a topic counts before what the configuration says.
      const isOverruled = ({ user = everybody, topic }: AccessRule): boolean =>
        added.has(`${user}\0${topic}`);
      rules = [...provisioned.filter((rule) => !isOverruled(rule)), ...added.values()];
      version += 1;
    },
  };
}

/** Lost with its process: for servers that have no store. */
export function memoryUserDirectory(
  options: Parameters<typeof createUserBook>[0] = {},
): UserDirectory {
  const book = createUserBook(options);
  const listeners: (() => void)[] = [];
  return {
    get version() {
      return book.version;
    },
    get users() {
      return book.users;
    },
    get rules() {
      return book.rules;
    },
    find: (name) => book.find(name),
    async change(decide) {
      const change = decide(book);
      checkRoom(book, change);
      book.apply(change);
      for (const tell of listeners) tell();
    },
    onChanged: (listener) => void listeners.push(listener),
  };
}

export function checkRoom(book: UserBook, change: UserChange): void {
  const { usersMax, rulesMax } = directoryLimits;
  const isFull =
    (change.kind === 'user-set' && book.users.length >= usersMax) ||
    (change.kind === 'access-set' && book.rules.length >= rulesMax);
  if (!isFull) return;
  const text = `there are ${usersMax} users or ${rulesMax} rules already`;
  throw new MillraceError('NOTIFY_REFUSED', text, { details: { problem: 'invalid' } });
}

// Users and rules that administrators added, as events of a system stream: every change is recorded, and all
// processes that follow the stream apply it.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { followSystemStream } from '../../store/system-stream.ts';
import type { AccessRule } from './access-rules.ts';
import { checkUsers, type NotifyUserSettings } from './notify-users.ts';
import {
  checkRoom,
  createUserBook,
  type UserBook,
  type UserChange,
  type UserDirectory,
} from './user-directory.ts';

export interface UserDirectoryOptions {
  /** Users of the configuration, which administrators cannot change. */
  readonly users?: readonly NotifyUserSettings[] | undefined;
  readonly access?: readonly AccessRule[] | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

/** A system stream: its event types begin with `$`, so ordinary readers skip them. */
const usersStream = '$millrace-notify-users';
const typePrefix = '$notify-';

/**
 * Opens the users of a store, and follows changes by other processes. The caller closes the store.
 *
 * @example
 * import { openUserDirectory } from 'millrace/topics';
 * import { openSqlite } from 'millrace/engines/sqlite';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * await using directory = await openUserDirectory(db.store);
 * const rule = { user: '*', topic: 'news-*', permission: 'read-only' } as const;
 * await directory.change(() => ({ kind: 'access-set', ...rule }));
 */
export async function openUserDirectory(
  store: EventStore,
  options: UserDirectoryOptions = {},
): Promise<UserDirectory & AsyncDisposable> {
  const { clock = systemClock, observer = silentObserver, users = [], access = [] } = options;
  checkUsers(users);
  const book = createUserBook({ users, access });
  const stream = await followSystemStream(store, {
    stream: usersStream,
    clock,
    observer,
    apply: (event) => book.apply(changeOf(event)),
    // An unreadable event may be a removal, so stored users are no longer trusted.
    onLost: () => book.removeAdded(),
  });
  return Object.assign(book, {
    async change(decide: (book: UserBook) => UserChange) {
      await stream.write(() => {
        const change = decide(book);
        checkRoom(book, change);
        const { kind, ...payload } = change;
        return { type: `${typePrefix}${kind}`, payload };
      });
    },
    [Symbol.asyncDispose]: () => stream[Symbol.asyncDispose](),
  });
}

function changeOf({ stream, revision, type, payload }: RecordedEvent): UserChange {
  const given = (payload ?? {}) as Readonly<Record<string, unknown>>;
  const kind = type.startsWith(typePrefix) ? type.slice(typePrefix.length) : '';
  const needed: Readonly<Record<string, readonly string[]>> = {
    'user-set': ['name', 'passwordHash'],
    'user-removed': ['name'],
    'access-set': ['user', 'topic', 'permission'],
    'access-removed': [],
  };
  const isWhole = needed[kind]?.every((field) => typeof given[field] === 'string');
  if (isWhole === true) return { kind, ...given } as unknown as UserChange;
  // Skipping an unreadable removal would let its user in.
  throw new MillraceError(
    'STORE_CORRUPT',
    `revision ${revision} of '${stream}' is not a change of topic users`,
    { details: { stream, revision, type } },
  );
}

// Users and rules that administrators added, as events of a system stream: every change is recorded, and all
// processes that follow the stream apply it.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { createIds } from '../../foundation/ids.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
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
const pauseMsMax = 5_000;

/**
 * Opens the users of a store, and follows changes by other processes. The caller closes the store.
 *
 * @example
 * import { openUserDirectory } from 'millrace/notify';
 * import { openEventStore } from 'millrace/platform';
 *
 * await using store = await openEventStore('sqlite:.millrace/events.db');
 * await using directory = await openUserDirectory(store);
 * const rule = { user: '*', topic: 'news-*', permission: 'read-only' } as const;
 * await directory.change(() => ({ kind: 'access-set', ...rule }));
 */
export async function openUserDirectory(
  store: EventStore,
  options: UserDirectoryOptions = {},
): Promise<UserDirectory & AsyncDisposable> {
  const { clock = systemClock, observer = silentObserver, users = [], access = [] } = options;
  checkUsers(users);
  const ids = createIds({ clock });
  const book = createUserBook({ users, access });
  const listeners: (() => void)[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  let revision = -1;
  /** An event could not be read, so stored users are no longer trusted. */
  let isCorrupt = false;

  function take(event: RecordedEvent): void {
    if (event.revision <= revision) return;
    book.apply(changeOf(event));
    revision = event.revision;
    for (const notify of listeners) notify();
  }

  async function catchUp(): Promise<void> {
    for await (const event of store.readStream(usersStream, { from: revision + 1 })) take(event);
  }

  async function follow(): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        for await (const item of store.subscribeToStream(usersStream, {
          after: revision,
          signal,
        })) {
          if (item.kind === 'events') for (const event of item.events) take(event);
          failures = 0;
        }
      } catch (error) {
        if (signal.aborted || hasCode(error, 'STORE_CLOSED')) return;
        if (hasCode(error, 'STORE_CORRUPT')) {
          isCorrupt = true;
          for (const notify of listeners) notify();
        }
        observer.log?.error({ err: error, failures }, 'subscription to topic users failed');
        await pause(Math.min(100 * 2 ** failures, pauseMsMax));
      }
    }
  }

  async function pause(ms: number): Promise<void> {
    try {
      await clock.sleep(ms, signal);
    } catch (error) {
      if (!hasCode(error, 'ABORTED')) throw error;
    }
  }

  /** Decides on the current state, and writes only if no other change came first. */
  async function change(decide: (book: UserBook) => UserChange): Promise<void> {
    for (;;) {
      await catchUp();
      const { kind, ...payload } = decide(book);
      checkRoom(book, { kind, ...payload } as UserChange);
      const eventId = ids.next();
      const event = {
        type: `${typePrefix}${kind}`,
        eventId,
        occurredAt: new Date(clock.now()).toISOString(),
        correlationId: eventId,
        tenant: '',
        aggregate: { bc: '', type: '', id: usersStream },
        payload,
      };
      try {
        const expected = revision === -1 ? 'none' : revision;
        await store.append(usersStream, [event], { expected, system: true });
        await catchUp();
        return;
      } catch (error) {
        if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
      }
    }
  }

  await catchUp();
  const following = follow();

  return {
    get version() {
      return book.version;
    },
    get users() {
      return isCorrupt ? book.users.filter(({ isProvisioned }) => isProvisioned) : book.users;
    },
    get rules() {
      return book.rules;
    },
    find(name) {
      const found = book.find(name);
      return isCorrupt && found?.isProvisioned === false ? undefined : found;
    },
    change,
    onChanged: (listener) => void listeners.push(listener),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await following;
    },
  };
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

// Waiting for messages: readers wait for any message, members of groups for a message of their group. A commit wakes
// only the affected readers and members: waking all of them would cost more than the commit.

import { matchesFilter } from '../../../bus/bus-engine.ts';
import { sleepMsMax, type Clock } from '../../../foundation/clock.ts';
import { createWaiters, type Waiters } from '../../../foundation/async/waiters.ts';
import { isTrueOrFails } from '../connection/watch.ts';

/** When a group has a message to deliver: 0 means now, undefined never. */
type DueAtMs = number | undefined;

interface Member {
  readonly name: string;
  readonly filters: readonly string[];
}

export interface BusWaits {
  /** Calls `hasMore` once, after the watch for commits of other processes has begun. */
  reader(signal: AbortSignal, hasMore: () => boolean): Promise<void>;
  /** Waits at most `ms` until the group may have a message. */
  member(
    group: Member,
    how: { readonly ms: number; readonly signal: AbortSignal; readonly due: () => DueAtMs },
  ): Promise<void>;
  onAppended(subjects: readonly string[]): void;
  onGroupChange(group: string): void;
  /** Another connection has committed. */
  onOtherCommit(): void;
  wakeAll(): void;
}

export function createBusWaits(clock: Clock, setWaiting: (isWaiting: boolean) => void): BusWaits {
  const readers = createWaiters();
  const members = new Map<Waiters, Member & { readonly isChanged: () => boolean }>();

  function leave(): void {
    if (readers.size + members.size === 0) setWaiting(false);
  }

  function wakeMembers(
    isAffected: (member: Member & { readonly isChanged: () => boolean }) => boolean,
  ): void {
    for (const [waiters, member] of members) if (isAffected(member)) waiters.wakeAll();
  }

  return {
    async reader(signal, hasMore) {
      setWaiting(true);
      try {
        await readers.wait(signal, () => isTrueOrFails(hasMore));
      } finally {
        leave();
      }
    },
    async member(group, { ms, signal, due }) {
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      const waiters = createWaiters();
      try {
        // Register the member before the check: a commit in between wakes it.
        let before: DueAtMs = 0;
        const isChanged = (): boolean => isTrueOrFails(() => due() !== before);
        members.set(waiters, { ...group, isChanged });
        before = due();
        const woken = waiters.wait(either, () => before === 0);
        setWaiting(true);
        const dueInMs = (before ?? Infinity) - clock.now();
        // A longer wait ends by a wake-up or an abort.
        const sleepMs = Math.max(0, Math.min(ms, dueInMs, sleepMsMax));
        await Promise.race([woken, clock.sleep(sleepMs, either)]);
      } finally {
        members.delete(waiters);
        over.abort('over');
        leave();
      }
    },
    onAppended(subjects) {
      readers.wakeAll();
      wakeMembers(({ filters }) =>
        subjects.some((subject) => filters.some((filter) => matchesFilter(filter, subject))),
      );
    },
    onGroupChange: (group) => wakeMembers(({ name }) => name === group),
    onOtherCommit() {
      readers.wakeAll();
      wakeMembers(({ isChanged }) => isChanged());
    },
    wakeAll() {
      readers.wakeAll();
      wakeMembers(() => true);
    },
  };
}

// Those who wait for the bus of a file: readers for whatever is published, members of groups for what is
// theirs. Who is not concerned sleeps on: waking everybody behind every commit costs more than the commit.

import { matchesFilter } from '../../../bus/bus-engine.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { createWaiters, type Waiters } from '../../../store/waiters.ts';

/** When a group has something to hand out: now (0), at a time, or undefined while nothing waits. */
type DueAtMs = number | undefined;

interface Member {
  readonly name: string;
  readonly filters: readonly string[];
}

export interface BusWaits {
  /** `isWritten` asks the file, which takes its time: later, when those who were told of something are done. */
  reader(signal: AbortSignal, isThere: () => boolean, isWritten: () => boolean): Promise<void>;
  /** Until the group has something, or that may have changed; at most so long. */
  member(
    group: Member,
    how: { readonly ms: number; readonly signal: AbortSignal; readonly due: () => DueAtMs },
  ): Promise<void>;
  appended(subjects: readonly string[]): void;
  changed(group: string): void;
  /** Somebody wrote something. Not for readers: those are told of it elsewhere. */
  byOthers(how: { readonly isForReaders: boolean }): void;
  all(): void;
}

export function createBusWaits(clock: Clock, setWaiting: (isAnybody: boolean) => void): BusWaits {
  const readers = createWaiters();
  const members = new Map<Waiters, Member & { readonly isChanged: () => boolean }>();

  function leave(): void {
    if (readers.size + members.size === 0) setWaiting(false);
  }

  function wakeMembers(
    isMeant: (member: Member & { readonly isChanged: () => boolean }) => boolean,
  ): void {
    for (const [waiters, member] of members) if (isMeant(member)) waiters.wakeAll();
  }

  return {
    async reader(signal, isThere, isWritten) {
      const looking = setImmediate(() => {
        if (isSoOrFails(isWritten)) readers.wakeAll();
      });
      try {
        const woken = readers.wait(signal, isThere);
        if (readers.size > 0) setWaiting(true);
        await woken;
      } finally {
        clearImmediate(looking);
        leave();
      }
    },
    async member(group, { ms, signal, due }) {
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      const waiters = createWaiters();
      try {
        // Before it is looked at: what is committed in between wakes it.
        let before: DueAtMs = 0;
        const isChanged = (): boolean => isSoOrFails(() => due() !== before);
        members.set(waiters, { ...group, isChanged });
        before = due();
        const woken = waiters.wait(either, () => before === 0);
        setWaiting(true);
        const dueInMs = (before ?? Infinity) - clock.now();
        await Promise.race([woken, sleep(clock, Math.min(ms, dueInMs), either)]);
      } finally {
        members.delete(waiters);
        over.abort('over');
        leave();
      }
    },
    appended(subjects) {
      readers.wakeAll();
      wakeMembers(({ filters }) =>
        subjects.some((subject) => filters.some((filter) => matchesFilter(filter, subject))),
      );
    },
    changed: (group) => wakeMembers(({ name }) => name === group),
    byOthers({ isForReaders }) {
      if (isForReaders) readers.wakeAll();
      wakeMembers(({ isChanged }) => isChanged());
    },
    all() {
      readers.wakeAll();
      wakeMembers(() => true);
    },
  };
}

function isSoOrFails(look: () => boolean): boolean {
  try {
    return look();
  } catch {
    // Whoever is woken meets the error in a read of its own, where it can be told.
    return true;
  }
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  // A timer knows no infinity; whoever waits that long is woken, or aborted.
  return clock.sleep(Math.min(Math.max(ms, 0), 2_147_483_647), signal);
}

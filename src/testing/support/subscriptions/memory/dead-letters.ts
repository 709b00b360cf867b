import {
  addedLetter,
  matchesFilter,
  type DeadLetter,
  type DeadLetterFilter,
} from '../../../../subscriptions/dead-letter.ts';
import type { DeadLetterStore } from '../../../../subscriptions/subscription-storage.ts';
import { checkFence, insertWaiting, shardIn, type MemoryTables } from './tables.ts';

export function memoryDeadLetters(tables: MemoryTables): DeadLetterStore {
  const { letters } = tables;
  const find = (filter: DeadLetterFilter): DeadLetter[] =>
    [...letters.values()]
      .filter((letter) => matchesFilter(letter, filter))
      .toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  const waitingOf = ({ position, eventId }: DeadLetter) => ({
    position,
    eventId,
    failures: 0,
    history: [],
  });

  return {
    async add(fence, added) {
      checkFence(tables, fence);
      const shard = shardIn(tables, fence);
      const before = [...letters.values()].find(
        ({ eventId, handler }) => eventId === added.eventId && handler === added.handler,
      );
      const letter = addedLetter(added, before);
      letters.set(letter.id, letter);
      shard.done.add(letter.position);
      const blockedStream = shard.blocked.get(letter.stream);
      if (letter.parked) {
        const parked = blockedStream ?? { due: undefined, events: [] };
        shard.blocked.set(letter.stream, parked);
        parked.due = undefined;
        insertWaiting(parked, waitingOf(letter));
      } else if (blockedStream !== undefined) {
        blockedStream.events = blockedStream.events.filter(
          ({ position }) => position !== letter.position,
        );
      }
      return { letter, isNew: (before?.replayRequestedAt ?? null) === null };
    },
    get: async (id) => letters.get(id),
    async list(filter, { limit = 100, after, withoutPayloads = false } = {}) {
      const found = find(filter);
      const from = after === undefined ? 0 : found.findIndex(({ id }) => id === after) + 1;
      const page = found.slice(from, from + limit);
      return withoutPayloads ? page.map((letter) => ({ ...letter, payload: null })) : page;
    },
    count: async (filter) => find(filter).length,
    async replay(filter, { by, atMs }) {
      const found = find({ ...filter, status: 'pending' });
      for (const letter of found) {
        const replayRequestedAt = new Date(atMs).toISOString();
        letters.set(letter.id, { ...letter, replayedBy: by, replayRequestedAt });
        const { blocked } = shardIn(tables, {
          subscription: letter.handler,
          shard: letter.shard,
        });
        const blockedStream = blocked.get(letter.stream) ?? { due: 0, events: [] };
        blocked.set(letter.stream, blockedStream);
        blockedStream.due = 0;
        insertWaiting(blockedStream, waitingOf(letter));
      }
      return found.length;
    },
    async discard(filter, { by, reason, atMs }) {
      const found = find({ ...filter, status: 'pending' });
      for (const letter of found) {
        letters.set(letter.id, {
          ...letter,
          status: 'discarded',
          discardedAt: new Date(atMs).toISOString(),
          discardedBy: by,
          discardReason: reason,
          replayRequestedAt: null,
        });
        const key = { subscription: letter.handler, shard: letter.shard };
        const blockedStream = shardIn(tables, key).blocked.get(letter.stream);
        if (blockedStream === undefined) continue;
        blockedStream.due = 0;
        blockedStream.events = blockedStream.events.filter(
          ({ position }) => position !== letter.position,
        );
      }
      return found.length;
    },
    async note(id, notes) {
      const letter = letters.get(id);
      if (letter === undefined) return false;
      letters.set(id, { ...letter, notes });
      return true;
    },
  };
}

function orderOf({ createdAt, id }: DeadLetter): string {
  return `${createdAt} ${id}`;
}

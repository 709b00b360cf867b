import { checkFence, insertWaiting, shardIn, type MemoryTables } from './memory-tables.ts';
import type { WaitingEvents } from './subscription-storage.ts';

export function memoryWaiting(tables: MemoryTables): WaitingEvents {
  return {
    async hold(fence, streams) {
      checkFence(tables, fence);
      const { blocked, done } = shardIn(tables, fence);
      for (const { stream, due, events } of streams) {
        const held = blocked.get(stream) ?? { due: 0, events: [] };
        blocked.set(stream, held);
        if (due !== 'behind') {
          held.due = due;
          // The first one has been tried again: what is known of it has changed.
          const known = new Set(events.map(({ position }) => position));
          held.events = held.events.filter(({ position }) => !known.has(position));
        }
        for (const event of events) {
          // The feed may bring again what was drained above the checkpoint.
          if (due === 'behind' && done.has(event.position)) continue;
          insertWaiting(held, event);
        }
      }
    },
    async due(key, nowMs, limit) {
      const { blocked } = shardIn(tables, key);
      return [...blocked]
        .filter(([, { due }]) => due !== undefined && due <= nowMs)
        .slice(0, limit)
        .map(([stream]) => stream);
    },
    next: async (key, stream, limit) =>
      shardIn(tables, key).blocked.get(stream)?.events.slice(0, limit) ?? [],
    async unblock(fence, stream) {
      checkFence(tables, fence);
      const { blocked } = shardIn(tables, fence);
      if ((blocked.get(stream)?.events.length ?? 0) > 0) return false;
      blocked.delete(stream);
      return true;
    },
    async count(subscription) {
      let count = 0;
      for (const [key, { blocked }] of tables.shards) {
        if (!key.startsWith(`${subscription}/`)) continue;
        for (const { events } of blocked.values()) count += events.length;
      }
      return count;
    },
  };
}

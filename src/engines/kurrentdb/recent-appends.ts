// Remembers the last appends with `any` and `exists`. The server recognizes a repeated one only while it remembers the ids in
// memory, so before such an append is repeated, its events are searched in the stream.

import type { StreamWrite } from '../../store/store-engine.ts';

export interface RecentAppends {
  /** The last known revision of the stream before an attempt; −1 if unknown. */
  revisionBefore(stream: string): number;
  acknowledged(write: StreamWrite, revision: number): void;
  failed(write: StreamWrite, revisionBefore: number): void;
  /** The events of the earlier attempt follow this revision; undefined if there was none. */
  searchAfter(write: StreamWrite): number | undefined;
}

export const recentLimits = { appendsMax: 10_000, streamsMax: 10_000 } as const;

export function createRecentAppends(limits: typeof recentLimits = recentLimits): RecentAppends {
  const revisions = new Map<string, number>();
  /** The revision of the stream before the first attempt of an append. */
  const attempts = new Map<string, number>();
  return {
    revisionBefore: (stream) => revisions.get(stream) ?? -1,
    acknowledged(write, revision) {
      if (isCheckedByMemory(write)) {
        remember(attempts, keyOf(write), revision - write.rows.length, limits.appendsMax);
      }
      const known = revisions.get(write.stream) ?? -1;
      remember(revisions, write.stream, Math.max(known, revision), limits.streamsMax);
    },
    failed(write, revisionBefore) {
      const key = keyOf(write);
      // The first of several attempts may be the one that was stored.
      remember(attempts, key, attempts.get(key) ?? revisionBefore, limits.appendsMax);
    },
    searchAfter: (write) => attempts.get(keyOf(write)),
  };
}

/** Whether the server checks a repeated append by its memory only. */
export function isCheckedByMemory({ expected }: StreamWrite): boolean {
  return expected === 'any' || expected === 'exists';
}

function keyOf({ stream, rows }: StreamWrite): string {
  return `${stream}\n${rows[0]?.eventId ?? ''}`;
}

/** Forgets the oldest entry of a full map. */
function remember(map: Map<string, number>, key: string, value: number, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

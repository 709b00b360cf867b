// Remembers the last appends. The server recognizes a repeated append with `any` or `exists` only while it remembers the
// ids in memory, so before such an append is repeated, its events are searched in the stream.

import type { StreamWrite } from '../../store/store-engine.ts';

/** The last revision of an append, and its position. */
export interface Appended {
  readonly revision: number;
  readonly sequence: number;
}

export interface RecentAppends {
  /** Starts an attempt. Events of an earlier one follow the returned revision; undefined: this is the first attempt. */
  begin(write: Write): number | undefined;
  /** The result of the append, if it was acknowledged. */
  known(write: Write): Appended | undefined;
  /** Returns the first result, if the append was acknowledged before. */
  acknowledge(write: Write, appended: Appended): Appended | undefined;
}

type Write = Pick<StreamWrite, 'stream' | 'rows'>;

interface Recent {
  readonly after: number;
  readonly appended?: Appended;
}

const limits = { appendsMax: 10_000, streamsMax: 10_000 } as const;

export function createRecentAppends(): RecentAppends {
  const appends = new Map<string, Recent>();
  /** The last known revisions of streams. */
  const revisions = new Map<string, number>();
  return {
    begin(write) {
      const key = keyOf(write);
      const earlier = appends.get(key);
      const after = earlier?.after ?? revisions.get(write.stream) ?? -1;
      if (earlier === undefined) remember(appends, key, { after }, limits.appendsMax);
      return earlier?.after;
    },
    known: (write) => appends.get(keyOf(write))?.appended,
    acknowledge(write, { revision, sequence }) {
      const key = keyOf(write);
      const { after: first = Infinity, appended: earlier } = appends.get(key) ?? {};
      if (earlier?.revision === revision) return earlier;
      const after = Math.min(first, revision - write.rows.length);
      remember(appends, key, { after, appended: { revision, sequence } }, limits.appendsMax);
      const known = revisions.get(write.stream) ?? -1;
      remember(revisions, write.stream, Math.max(known, revision), limits.streamsMax);
      return undefined;
    },
  };
}

function keyOf({ stream, rows }: Write): string {
  return `${stream}\n${rows[0]?.eventId ?? ''}`;
}

/** Forgets the oldest entry of a full map. */
function remember<Value>(
  map: Map<string, Value>,
  key: string,
  value: Value,
  entriesMax: number,
): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > entriesMax && oldest !== undefined) map.delete(oldest);
}

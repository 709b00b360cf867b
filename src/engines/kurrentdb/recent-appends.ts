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
  /** The first result, if the append was acknowledged. */
  known(write: Write, appended: Appended): Appended | undefined;
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

  /** An append that only begins with the same event is another one. */
  function known(write: Write, { revision }: Appended): Appended | undefined {
    const earlier = appends.get(keyOf(write))?.appended;
    return earlier?.revision === revision ? earlier : undefined;
  }

  return {
    begin(write) {
      const key = keyOf(write);
      const earlier = appends.get(key);
      const after = earlier?.after ?? revisions.get(write.stream) ?? -1;
      if (earlier === undefined) remember(appends, key, { after }, limits.appendsMax);
      return earlier?.after;
    },
    known,
    acknowledge(write, { revision, sequence }) {
      const key = keyOf(write);
      const earlier = known(write, { revision, sequence });
      if (earlier !== undefined) return earlier;
      const { after: first = Infinity } = appends.get(key) ?? {};
      const after = Math.min(first, revision - write.rows.length);
      remember(appends, key, { after, appended: { revision, sequence } }, limits.appendsMax);
      const highest = Math.max(revisions.get(write.stream) ?? -1, revision);
      remember(revisions, write.stream, highest, limits.streamsMax);
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

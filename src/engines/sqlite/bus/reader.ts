// Reads of the bus on the calling thread: messages independent of groups, streams, groups and pending messages.

import type { DatabaseSync } from 'node:sqlite';
import type { GroupInfo, PendingMessage, StreamInfo } from '../../../bus/bus.ts';
import { matchesFilter, type StoredEntry } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { parseStored } from '../../../foundation/parse-json.ts';
import type { SqlRow } from '../thread/protocol.ts';

export interface BusReader {
  head(): number;
  dataVersion(): number;
  /** The sequence of the last message before this time. */
  before(timeMs: number): number;
  /** When the group has a message to deliver: 0 means now, undefined never. */
  dueAtMs(group: string, nowMs: number): number | undefined;
  /** Remembers which streams match the pattern, and adds new ones. */
  scanner(pattern: string): (range: {
    readonly after: number;
    readonly upTo: number;
    readonly limit: number;
  }) => {
    readonly entries: readonly StoredEntry[];
    /** False: the batch is full, and more messages may follow. */
    readonly isEnd: boolean;
  };
  streams(
    pattern: string,
    page: { readonly after: string | undefined; readonly limit: number },
  ): readonly StreamInfo[];
  groups(): readonly GroupInfo[];
  pending(group: string, limit: number): readonly PendingMessage[] | undefined;
  close(): void;
}

/** After skipping this many messages of other groups, a group moves its cursor past them. */
const passedMax = 10_000;

export function createBusReader(database: DatabaseSync): BusReader {
  const rows = (sql: string) => {
    const statement = database.prepare(sql);
    return (...values: readonly (string | number | null)[]): readonly SqlRow[] =>
      statement.all(...values) as unknown as readonly SqlRow[];
  };
  const head = rows('select max(seq) as seq from bus_messages');
  const dataVersion = rows('pragma data_version');
  const firstFrom = rows(
    'select seq from bus_messages where stored_at_ms >= ? order by seq limit 1',
  );
  const due = rows(
    `select g.id, g.cursor, (select max(seq) from bus_messages) as head,
       (select min(available_at_ms) from bus_pending p where p.group_id = g.id) as due,
       g.max_ack_pending > (select count(*) from bus_pending p where p.group_id = g.id) as room
     from bus_groups g where g.name = ? and json_valid(g.filters)`,
  );
  const ofGroup = rows(
    `select 1 from bus_messages m where m.seq > ? and m.seq <= ? and exists
       (select 1 from bus_group_streams b where b.group_id = ? and b.stream_id = +m.stream_id)
     limit 1`,
  );
  const newStreams = rows('select id, subject from bus_streams where id > ? order by id');
  const subjects = rows('select id, subject from bus_streams where subject > ? order by subject');
  const scanOne = database.prepare(
    `select seq, stream_id, stored_at_ms, data, meta from bus_messages
     where stream_id = ? and seq > ? and seq <= ? order by seq limit ?`,
  );
  const scanMany = database.prepare(
    `select seq, stream_id, stored_at_ms, data, meta from bus_messages
     where +stream_id in (select value from json_each(?)) and seq > ? and seq <= ?
     order by seq limit ?`,
  );
  const about = rows(
    `select length, bytes,
       (select min(seq) from bus_messages where stream_id = s.id) as first,
       (select max(seq) from bus_messages where stream_id = s.id) as last
     from bus_streams s where s.id = ?`,
  );
  const storedAt = rows('select stored_at_ms from bus_messages where seq = ?');
  const streamGroups = rows(
    `select g.name,
       (select count(*) from bus_messages m where m.stream_id = b.stream_id and m.seq > g.cursor) as lag,
       (select count(*) from bus_pending p
         where p.stream_id = b.stream_id and p.group_id = g.id) as pending
     from bus_group_streams b join bus_groups g on g.id = b.group_id
     where b.stream_id = ? order by g.name`,
  );
  const groups = rows(
    `select g.*, (select count(*) from bus_pending p where p.group_id = g.id) as pending,
       (select count(*) from bus_group_streams b join bus_messages m on m.stream_id = b.stream_id
         where b.group_id = g.id and m.seq > g.cursor) as lag
     from bus_groups g order by g.name`,
  );
  const hasGroup = rows('select id from bus_groups where name = ?');
  const pendingOf = rows(
    `select p.seq, p.delivery_count, p.available_at_ms, s.subject
     from bus_pending p join bus_streams s on s.id = p.stream_id
     where p.group_id = ? order by p.seq limit ?`,
  );

  const headNow = (): number => Number(head()[0]?.['seq'] ?? 0);
  /** For each group: the sequence up to which no message after its cursor belongs to the group. */
  const passed = new Map<string, { readonly cursor: string; readonly to: number }>();

  /**
   * Whether a message after the cursor belongs to the group. Messages of other groups are skipped in memory. Moving the
   * cursor in the file would cost one commit and one sync per message.
   */
  function hasFresh(group: string, row: SqlRow): boolean {
    const [from, to] = [Number(row['cursor']), Number(row['head'] ?? 0)];
    // Move the cursor periodically: a restarted process scans from it.
    if (to - from > passedMax) return true;
    // A recreated group and a group after a seek start again at their cursor.
    const cursor = `${Number(row['id'])}:${from}`;
    const before = passed.get(group);
    const after = before?.cursor === cursor ? before.to : from;
    if (to <= after) return false;
    if (ofGroup(after, to, Number(row['id'])).length > 0) return true;
    passed.set(group, { cursor, to });
    return false;
  }

  const timeOf = (seq: SqlRow[string] | undefined): Date | undefined =>
    seq === null || seq === undefined
      ? undefined
      : new Date(Number(storedAt(Number(seq))[0]?.['stored_at_ms']));

  function infoOf(row: SqlRow): StreamInfo | undefined {
    const id = Number(row['id']);
    const [stream] = about(id);
    if (stream === undefined) return undefined;
    const { first = null, last = null } = stream;
    return {
      subject: String(row['subject']),
      length: Number(stream['length']),
      firstSequence: first === null ? undefined : String(first),
      lastSequence: last === null ? undefined : String(last),
      firstStoredAt: timeOf(first),
      lastStoredAt: timeOf(last),
      bytes: Number(stream['bytes']),
      groups: streamGroups(id).map((each) => ({
        name: String(each['name']),
        lag: Number(each['lag']),
        pending: Number(each['pending']),
      })),
    };
  }

  return {
    head: headNow,
    dataVersion: () => Number(dataVersion()[0]?.['data_version']),
    before(timeMs) {
      const [row] = firstFrom(timeMs);
      return row === undefined ? headNow() : Number(row['seq']) - 1;
    },
    dueAtMs(group, nowMs) {
      const [row] = due(group);
      // Return 0 for an unknown or damaged group: the fetch that follows reports it.
      if (row === undefined || (row['room'] === 1 && hasFresh(group, row))) return 0;
      const dueMs = row['due'] ?? null;
      if (dueMs === null) return undefined;
      return Number(dueMs) <= nowMs ? 0 : Number(dueMs);
    },
    scanner(pattern) {
      const subjectOf = new Map<number, string>();
      let lastStream = 0;
      return ({ after, upTo, limit }) => {
        for (const { id = 0, subject = '' } of newStreams(lastStream)) {
          lastStream = Number(id);
          if (matchesFilter(pattern, String(subject))) subjectOf.set(lastStream, String(subject));
        }
        const ids = [...subjectOf.keys()];
        const found =
          ids.length === 1
            ? scanOne.iterate(ids[0] ?? 0, after, upTo, limit)
            : scanMany.iterate(JSON.stringify(ids), after, upTo, limit);
        const entries: StoredEntry[] = [];
        let bytes = 0;
        for (const row of found as Iterable<SqlRow>) {
          const entry = toStored(row, subjectOf.get(Number(row['stream_id'])) ?? '');
          entries.push(entry);
          bytes += entry.data.length;
          if (bytes >= busLimits.batchBytesMax) return { entries, isEnd: false };
        }
        return { entries, isEnd: entries.length < limit };
      };
    },
    streams(pattern, { after, limit }) {
      const isFull = !/(?:^|\.)[*>](?:\.|$)/.test(pattern);
      const found: StreamInfo[] = [];
      for (const row of subjects(after ?? '')) {
        const subject = String(row['subject']);
        if (isFull ? subject !== pattern : !matchesFilter(pattern, subject)) continue;
        const info = infoOf(row);
        if (info !== undefined) found.push(info);
        if (found.length === limit) break;
      }
      return found;
    },
    groups: () =>
      groups().map((row) => ({
        name: String(row['name']),
        subject: patternOf(row),
        leaseMs: Number(row['lease_ms']),
        maxAckPending: Number(row['max_ack_pending']),
        lag: Number(row['lag']),
        pending: Number(row['pending']),
      })),
    pending(group, limit) {
      const [row] = hasGroup(group);
      return row === undefined
        ? undefined
        : pendingOf(Number(row['id']), limit).map((each) => ({
            subject: String(each['subject']),
            sequence: String(each['seq']),
            deliveryCount: Number(each['delivery_count']),
            availableAt: new Date(Number(each['available_at_ms'])),
          }));
    },
    close() {
      if (database.isOpen) database.close();
    },
  };
}

/** The pattern of a group; the stored text if it is damaged. */
function patternOf({ filters = '' }: SqlRow): string {
  const [pattern] = Object.values(Object(parseStored(filters)) as Record<string, unknown>);
  return typeof pattern === 'string' ? pattern : String(filters);
}

export function toStored(row: SqlRow, subject: string): StoredEntry {
  const { seq = 0, data, meta = null } = row;
  return {
    subject,
    sequence: String(seq),
    position: String(seq),
    storedAtMs: Number(row['stored_at_ms']),
    data: data instanceof Uint8Array ? data : new Uint8Array(),
    meta: meta === null ? undefined : String(meta),
  };
}

// The bus inside the writer thread: each operation is part of the commit that its reply reports.

import type { DatabaseSync } from 'node:sqlite';
import {
  matchesFilter,
  type Appended,
  type EngineEntry,
  type GroupSettings,
  type Settlement,
} from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { parseStored } from '../../../foundation/parse-json.ts';
import type { SettleOutcome } from '../../../bus/bus-message.ts';
import { decodeToken } from '../connection/lease-token.ts';
import { createSqlQuery, type Handlers, type Operation, type SqlRow } from '../thread/protocol.ts';
import { createBusTrimming, type BusTrim, type TrimStep } from './trim.ts';

/** `end` and times are resolved to cursors by the writer, under the write lock. */
export type BusStart =
  | { readonly kind: 'after'; readonly seq: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'time'; readonly ms: number };

type BusGroupRow = Omit<GroupSettings, 'from'> & { readonly from: BusStart };

export interface BusOperations {
  readonly 'bus.append': Operation<
    {
      readonly entries: readonly EngineEntry[];
      readonly dedupeWindowMs: number;
      readonly nowMs: number;
    },
    readonly Appended[]
  >;
  /** Returns the filters of an existing group, if they differ. */
  readonly 'bus.ensureGroup': Operation<
    { readonly group: BusGroupRow },
    readonly string[] | undefined
  >;
  readonly 'bus.fetch': Operation<
    { readonly group: string; readonly limit: number; readonly nowMs: number },
    { readonly isUnknown: boolean; readonly rows: readonly SqlRow[] }
  >;
  readonly 'bus.settle': Operation<
    {
      readonly group: string;
      readonly settlements: readonly Settlement[];
      readonly dedupeWindowMs: number;
      readonly nowMs: number;
    },
    readonly SettleOutcome[]
  >;
  readonly 'bus.remove': Operation<
    { readonly subject: string; readonly seqs: readonly number[] },
    number
  >;
  /** Removes at most `trimStepMax` messages. */
  readonly 'bus.trim': Operation<{ readonly subject: string; readonly order: BusTrim }, TrimStep>;
  readonly 'bus.deleteStream': Operation<{ readonly subject: string }, boolean>;
  readonly 'bus.seek': Operation<{ readonly group: string; readonly to: BusStart }, boolean>;
  readonly 'bus.deleteGroup': Operation<{ readonly group: string }, boolean>;
}

/** A group of at most this many streams reads each of them; a group of more scans all messages. */
const fewStreams = 8;
/** Deleting expired ids costs as much as a message, so it runs once per this many messages. */
const expireEvery = 32;

export function createBusHandlers(database: DatabaseSync): Handlers<BusOperations> {
  const query = createSqlQuery(database);
  const { all, one, number } = query;
  const head = (): number => number('select max(seq) from bus_messages');
  const streamId = (subject: string): number | undefined => {
    const row = one('select id from bus_streams where subject = ?', subject);
    return row === undefined ? undefined : Number(row['id']);
  };
  const { trim, drop, deleteStream } = createBusTrimming({ ...query, head, streamId });
  const groupRow = (name: string): SqlRow | undefined =>
    one('select * from bus_groups where name = ?', name);

  function newStream(subject: string): number {
    const id = number('insert into bus_streams (subject) values (?) returning id', subject);
    for (const group of all('select id, filters from bus_groups')) {
      if (matchesAny(filtersOf(group) ?? [], subject)) bind(Number(group['id']), id);
    }
    return id;
  }

  function bind(group: number, stream: number): void {
    all(
      'insert or ignore into bus_group_streams (group_id, stream_id) values (?, ?)',
      group,
      stream,
    );
  }

  function append(
    { subject, id, data, meta }: EngineEntry,
    { dedupeWindowMs, nowMs }: { readonly dedupeWindowMs: number; readonly nowMs: number },
  ): Appended {
    const known = one(
      `select s.id, i.seq from bus_streams s left join bus_message_ids i
         on i.stream_id = s.id and i.id = ? and i.expires_at_ms > ?
       where s.subject = ?`,
      id,
      nowMs,
      subject,
    );
    const duplicate = known?.['seq'] ?? null;
    if (duplicate !== null) return { sequence: String(duplicate), isDuplicate: true };
    const stream = known === undefined ? newStream(subject) : Number(known['id']);
    const seq = number(
      'insert into bus_messages (stream_id, stored_at_ms, data, meta) values (?, ?, ?, ?) returning seq',
      stream,
      nowMs,
      data,
      meta ?? null,
    );
    all(
      `insert into bus_message_ids (stream_id, id, seq, expires_at_ms) values (?, ?, ?, ?)
       on conflict do update set seq = excluded.seq, expires_at_ms = excluded.expires_at_ms`,
      stream,
      id,
      seq,
      nowMs + dedupeWindowMs,
    );
    all(
      'update bus_streams set length = length + 1, bytes = bytes + ? where id = ?',
      data.length,
      stream,
    );
    return { sequence: String(seq), isDuplicate: false };
  }

  let sinceExpiry = 0;

  /** Deletes more ids than were added since the last call, so expired ids never accumulate. */
  function deleteExpiredIds(nowMs: number, appended: number): void {
    sinceExpiry += appended;
    if (sinceExpiry < expireEvery) return;
    const count = sinceExpiry;
    sinceExpiry = 0;
    all(
      `delete from bus_message_ids where (stream_id, id) in
         (select stream_id, id from bus_message_ids where expires_at_ms <= ? limit ?)`,
      nowMs,
      2 * count + 1,
    );
  }

  function cursorOf(start: BusStart): number {
    if (start.kind === 'after') return start.seq;
    if (start.kind === 'end') return head();
    const first = one(
      'select seq from bus_messages where stored_at_ms >= ? order by seq limit 1',
      start.ms,
    );
    return first === undefined ? head() : Number(first['seq']) - 1;
  }

  function ensureGroup(group: BusGroupRow): readonly string[] | undefined {
    const { name, filters, leaseMs, maxAckPending, from } = group;
    const existing = groupRow(name);
    if (existing !== undefined) {
      const before = filtersOf(existing);
      if (before !== undefined && existing['filters'] !== JSON.stringify(filters)) return before;
      all(
        'update bus_groups set filters = ?, lease_ms = ?, max_ack_pending = ? where name = ?',
        JSON.stringify(filters),
        leaseMs,
        maxAckPending,
        name,
      );
      if (before === undefined) bindStreams(Number(existing['id']), filters);
      return undefined;
    }
    const id = number(
      `insert into bus_groups (name, filters, lease_ms, max_ack_pending, cursor)
       values (?, ?, ?, ?, ?) returning id`,
      name,
      JSON.stringify(filters),
      leaseMs,
      maxAckPending,
      cursorOf(from),
    );
    bindStreams(id, filters);
    return undefined;
  }

  function bindStreams(group: number, filters: readonly string[]): void {
    for (const stream of all('select id, subject from bus_streams')) {
      if (matchesAny(filters, String(stream['subject']))) bind(group, Number(stream['id']));
    }
  }

  function fetch(name: string, limit: number, nowMs: number): BusOperations['bus.fetch']['result'] {
    const group = groupRow(name);
    // A group whose filters are damaged lacks the streams created since: creating it again repairs it.
    if (group === undefined || filtersOf(group) === undefined) return { isUnknown: true, rows: [] };
    const id = Number(group['id']);
    const availableAtMs = nowMs + Number(group['lease_ms']);
    const found = all(
      `select p.seq, length(m.data) as bytes from bus_pending p left join bus_messages m on m.seq = p.seq
       where p.group_id = ? and p.available_at_ms <= ? order by p.seq limit ?`,
      id,
      nowMs,
      limit,
    );
    const meter = createMeter();
    const due = found.filter(meter.fits);
    const pending = number('select count(*) from bus_pending where group_id = ?', id);
    const room = Math.min(limit - found.length, Number(group['max_ack_pending']) - pending);
    const fresh = room <= 0 ? [] : next(id, { cursor: Number(group['cursor']), room, meter });
    if (due.length + fresh.length === 0) return { isUnknown: false, rows: [] };
    const token = number('update bus_tokens set token = token + 1 returning token');
    for (const { seq = 0 } of due) {
      all(
        `update bus_pending set delivery_count = delivery_count + 1, token = ?, available_at_ms = ?
         where group_id = ? and seq = ?`,
        token,
        availableAtMs,
        id,
        seq,
      );
    }
    for (const { seq = 0, stream_id: stream = 0 } of fresh) {
      all(
        `insert into bus_pending (group_id, seq, stream_id, available_at_ms, delivery_count, token)
         values (?, ?, ?, ?, 1, ?)`,
        id,
        seq,
        stream,
        availableAtMs,
        token,
      );
    }
    // Sort by sequence: redelivered messages come before newer ones.
    const rows = all(
      `select p.seq, p.token, p.delivery_count, s.subject, m.stored_at_ms, m.data, m.meta
       from bus_pending p join bus_messages m on m.seq = p.seq
         join bus_streams s on s.id = p.stream_id
       where p.group_id = ? and p.seq in (select value from json_each(?)) order by p.seq`,
      id,
      JSON.stringify([...due, ...fresh].map(({ seq }) => seq)),
    );
    return { isUnknown: false, rows };
  }

  /** The next messages after the cursor; moves the cursor past them. */
  function next(
    group: number,
    { cursor, room, meter }: { cursor: number; room: number; meter: Meter },
  ): readonly SqlRow[] {
    const streams = all(
      `select stream_id from bus_group_streams where group_id = ? limit ${fewStreams + 1}`,
      group,
    );
    const found =
      streams.length <= fewStreams
        ? streams
            .flatMap(({ stream_id: stream = 0 }) =>
              all(
                `select seq, stream_id, length(data) as bytes from bus_messages
                 where stream_id = ? and seq > ? order by seq limit ?`,
                stream,
                cursor,
                room,
              ),
            )
            .toSorted((a, b) => Number(a['seq']) - Number(b['seq']))
            .slice(0, room)
        : all(
            `select m.seq, m.stream_id, length(m.data) as bytes from bus_messages m
             where m.seq > ? and exists (select 1 from bus_group_streams g
               where g.group_id = ? and g.stream_id = +m.stream_id)
             order by m.seq limit ?`,
            cursor,
            group,
            room,
          );
    // Move the cursor past all scanned messages, so that no later fetch scans them again.
    const rows = found.filter(meter.fits);
    const isAll = rows.length === found.length && found.length < room;
    const reached = isAll ? head() : Number(rows.at(-1)?.['seq'] ?? cursor);
    if (reached > cursor) {
      all('update bus_groups set cursor = ? where id = ?', reached, group);
    }
    return rows;
  }

  function settle(
    group: SqlRow,
    settlement: Settlement,
    times: { readonly nowMs: number; readonly dedupeWindowMs: number },
  ): SettleOutcome {
    const id = Number(group['id']);
    const { seq, token } = decodeToken(settlement.token);
    const leased = one(
      'select stream_id from bus_pending where group_id = ? and seq = ? and token = ?',
      id,
      seq,
      token,
    );
    if (leased === undefined) return 'stale';
    const { nowMs } = times;
    if (settlement.kind === 'dead') append(settlement.letter, times);
    if (settlement.kind === 'dead' || settlement.kind === 'ack') {
      all('delete from bus_pending where group_id = ? and seq = ?', id, seq);
      return 'settled';
    }
    const [availableAtMs, uncounted, newToken] =
      settlement.kind === 'extend'
        ? [nowMs + Number(group['lease_ms']), 0, token]
        : settlement.kind === 'nack'
          ? [nowMs + settlement.delayMs, 0, 0]
          : [nowMs, 1, 0];
    all(
      `update bus_pending set available_at_ms = ?, delivery_count = delivery_count - ?, token = ?
       where group_id = ? and seq = ?`,
      availableAtMs,
      uncounted,
      newToken,
      id,
      seq,
    );
    return 'settled';
  }

  return {
    'bus.append': (request) => {
      deleteExpiredIds(request.nowMs, request.entries.length);
      return request.entries.map((entry) => append(entry, request));
    },
    'bus.ensureGroup': ({ group }) => ensureGroup(group),
    'bus.fetch': ({ group, limit, nowMs }) => fetch(group, limit, nowMs),
    'bus.settle': (request) => {
      const group = groupRow(request.group);
      return request.settlements.map((each) =>
        group === undefined ? 'stale' : settle(group, each, request),
      );
    },
    'bus.remove': ({ subject, seqs }) => {
      const stream = streamId(subject);
      if (stream === undefined) return 0;
      return drop(stream, 'seq in (select value from json_each(?))', JSON.stringify(seqs));
    },
    'bus.trim': ({ subject, order }) => trim(subject, order),
    'bus.deleteStream': ({ subject }) => deleteStream(subject),
    'bus.seek': ({ group: name, to }) => {
      const group = groupRow(name);
      if (group === undefined) return false;
      const id = Number(group['id']);
      all('delete from bus_pending where group_id = ?', id);
      all('update bus_groups set cursor = ? where id = ?', cursorOf(to), id);
      return true;
    },
    'bus.deleteGroup': ({ group: name }) => {
      const group = groupRow(name);
      if (group === undefined) return false;
      const id = Number(group['id']);
      all('delete from bus_pending where group_id = ?', id);
      all('delete from bus_group_streams where group_id = ?', id);
      all('delete from bus_groups where id = ?', id);
      return true;
    },
  };
}

interface Meter {
  /** Takes rows one by one; false after the row that reached the size of a fetch. */
  readonly fits: (row: SqlRow) => boolean;
}

function createMeter(): Meter {
  let bytes = 0;
  return {
    fits(row) {
      if (bytes >= busLimits.batchBytesMax) return false;
      bytes += Number(row['bytes'] ?? 0);
      return true;
    },
  };
}

/** Undefined: the stored text is damaged. */
function filtersOf(group: SqlRow): readonly string[] | undefined {
  const filters = parseStored(group['filters']);
  return Array.isArray(filters) ? (filters as string[]) : undefined;
}

function matchesAny(filters: readonly string[], subject: string): boolean {
  return filters.some((filter) => matchesFilter(filter, subject));
}

// Appends inside the writer's transaction: `decideAppend` decides, this file reads and writes the rows.

import type { DatabaseSync } from 'node:sqlite';
import { decideAppend, isRejected, type StreamState } from '../../../store/expected-revision.ts';
import { categoryOf } from '../../../store/stream-category.ts';
import { decideRetention } from '../../../store/retention.ts';
import type { RetentionChange, StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import { toStreamState } from './reader.ts';

export interface Appender {
  /** Call it at the start of each transaction: another process may have changed the cached streams. */
  begin(): void;
  one(write: StreamWrite, nowMs: number): WriteOutcome;
  /** Appends to several streams; if one write is rejected, all of them are rolled back. */
  together(writes: readonly StreamWrite[], nowMs: number): readonly WriteOutcome[];
  /** Call it after a rollback, which may have removed cached ids and streams. */
  clearCache(): void;
}

interface StreamRow {
  readonly id: number;
  state: StreamState;
  /** The id of the last event, if this appender wrote it. */
  lastId?: string | undefined;
  /** Ids of events from this revision on are not in the index: they are found by scanning the events. */
  idsTo: number;
}

/**
 * The most events of a stream whose ids are not indexed. Appends that look up ids need a low limit; appends at an
 * expected revision look up nothing and allow a higher one.
 */
const unindexedMax = { onLookup: 64, onAppend: 1_024 } as const;

/** Only the appender changes streams, so streams in use need not be read again. */
const streamsMax = 4_096;

export function createAppender(database: DatabaseSync): Appender {
  const prepare = (sql: string) => database.prepare(sql);
  const selectStream = prepare(
    `select id, revision, truncate_before, max_count, max_age_s, tombstoned, ids_to
     from streams where name = ?`,
  );
  const insertStream = prepare('insert into streams (name) values (?)');
  const updateStream = prepare(
    'update streams set revision = ?, truncate_before = ?, tombstoned = ? where id = ?',
  );
  const updateIdsTo = prepare('update streams set ids_to = ? where id = ?');
  const insertIds = prepare(
    `insert or ignore into event_ids (stream_id, event_id, revision)
     select stream_id, event_id, revision from events
     where stream_id = ? and revision >= ? order by event_id, revision`,
  );
  const updateRetention = prepare(
    'update streams set truncate_before = ?, max_count = ?, max_age_s = ? where id = ?',
  );
  const insertEvent = prepare(
    `insert into events (stream_id, revision, event_id, type_id, category_id, tenant_id,
       recorded_at_ms, payload, meta) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const idsFrom = prepare(
    'select event_id from events where stream_id = ? and revision between ? and ? order by revision',
  );
  const revisionOf = prepare(
    `select revision from event_ids where stream_id = ?1 and event_id = ?2
     union all
     select revision from events where stream_id = ?1 and revision >= ?3 and event_id = ?2
     limit 1`,
  );
  const sequenceAt = prepare('select sequence from events where stream_id = ? and revision = ?');
  const insertName = prepare('insert or ignore into names (name) values (?)');
  const selectName = prepare('select id from names where name = ?');
  const insertPair = prepare(
    'insert or ignore into category_types (category_id, type_id) values (?, ?)',
  );
  const selectVersion = prepare('pragma data_version');
  const nameIds = new Map<string, number>();
  const pairs = new Set<string>();
  const streams = new Map<string, StreamRow>();
  let version = Number.NaN;

  function nameId(name: string): number {
    const known = nameIds.get(name);
    if (known !== undefined) return known;
    insertName.run(name);
    const id = Number(selectName.get(name)?.['id']);
    nameIds.set(name, id);
    return id;
  }

  function notePair(categoryId: number, typeId: number): void {
    const pair = `${categoryId}:${typeId}`;
    if (pairs.has(pair)) return;
    insertPair.run(categoryId, typeId);
    pairs.add(pair);
  }

  function find(name: string): StreamRow | undefined {
    const known = streams.get(name);
    if (known !== undefined) return known;
    const row = selectStream.get(name);
    if (row === undefined) return undefined;
    const [id, idsTo] = [Number(row['id']), Number(row['ids_to'])];
    return keep(name, { id, idsTo, state: toStreamState(row) });
  }

  function keep(name: string, stream: StreamRow): StreamRow {
    // Dropping the whole cache is simpler than evicting the least recently used stream, and as fast at this size.
    if (streams.size >= streamsMax) streams.clear();
    streams.set(name, stream);
    return stream;
  }

  function findOrCreate(name: string): StreamRow {
    const found = find(name);
    if (found !== undefined) return found;
    const id = Number(insertStream.run(name).lastInsertRowid);
    const state = { revision: -1, truncateBefore: 0, tombstoned: false };
    return keep(name, { id, idsTo: 0, state });
  }

  function decide(each: StreamWrite, stream: StreamRow | undefined) {
    const ids = each.rows.map((row) => row.eventId);
    const known = {
      idsFrom(revision: number, count: number): readonly string[] {
        if (stream === undefined) return [];
        if (revision === stream.state.revision && stream.lastId !== undefined) {
          return [stream.lastId];
        }
        return idsFrom
          .all(stream.id, revision, revision + count - 1)
          .map((row) => String(row['event_id']));
      },
      revisionOf(id: string): number | undefined {
        if (stream === undefined || stream.state.revision < 0) return undefined;
        if (unindexedIds(stream) > unindexedMax.onLookup) indexIds(stream);
        const row = revisionOf.get(stream.id, id, stream.idsTo);
        return row === undefined ? undefined : Number(row['revision']);
      },
    };
    return decideAppend(stream?.state, each.expected, ids, known, each.follows);
  }

  function write(
    each: StreamWrite,
    found: StreamRow | undefined,
    { revives, nowMs }: { readonly revives: boolean; readonly nowMs: number },
  ): WriteOutcome {
    const stream = found ?? findOrCreate(each.stream);
    const categoryId = nameIdOrNone(categoryOf(each.stream));
    let { revision } = stream.state;
    let sequence = 0;
    // The rows of an append mostly have one type, and nearly always one tenant.
    let [type, typeId, tenant, tenantId] = ['', 0, '', 0];
    for (const row of each.rows) {
      revision += 1;
      if (row.type !== type) {
        ({ type } = row);
        typeId = nameId(type);
        notePair(categoryId, typeId);
      }
      if (row.tenant !== tenant) {
        ({ tenant } = row);
        tenantId = nameIdOrNone(tenant === '' ? undefined : tenant);
      }
      const inserted = insertEvent.run(
        stream.id,
        revision,
        row.eventId,
        typeId,
        categoryId,
        tenantId,
        nowMs,
        row.payload,
        row.meta,
      );
      sequence = Number(inserted.lastInsertRowid);
    }
    const truncateBefore = revives ? stream.state.revision + 1 : stream.state.truncateBefore;
    const tombstoned = each.tombstone === true;
    updateStream.run(revision, truncateBefore, tombstoned ? 1 : 0, stream.id);
    stream.state = { ...stream.state, revision, truncateBefore, tombstoned };
    stream.lastId = each.rows.at(-1)?.eventId;
    if (unindexedIds(stream) > unindexedMax.onAppend) indexIds(stream);
    if (each.retention !== undefined) retain(each.retention);
    return { kind: 'appended', revision, sequence };
  }

  function unindexedIds({ state, idsTo }: StreamRow): number {
    return state.revision + 1 - idsTo;
  }

  function indexIds(stream: StreamRow): void {
    insertIds.run(stream.id, stream.idsTo);
    stream.idsTo = stream.state.revision + 1;
    updateIdsTo.run(stream.idsTo, stream.id);
  }

  function nameIdOrNone(name: string | undefined): number {
    return name === undefined ? 0 : nameId(name);
  }

  function retain(change: RetentionChange): void {
    const stream = findOrCreate(change.of);
    const decision = decideRetention(stream.state, change);
    if (decision.kind !== 'retain') return;
    const { maxCount, maxAgeSeconds } = change.values;
    const { truncateBefore } = decision;
    updateRetention.run(truncateBefore, maxCount ?? null, maxAgeSeconds ?? null, stream.id);
    stream.state = { ...stream.state, truncateBefore, maxCount, maxAgeSeconds };
  }

  function one(each: StreamWrite, nowMs: number): WriteOutcome {
    if (each.retention !== undefined) {
      const retained = decideRetention(find(each.retention.of)?.state, each.retention);
      if (retained.kind !== 'retain') return retained;
    }
    const stream = find(each.stream);
    const decision = decide(each, stream);
    if (isRejected(decision)) return decision;
    if (decision.kind === 'append') {
      return write(each, stream, { revives: decision.revives, nowMs });
    }
    const sequence = Number(sequenceAt.get(stream?.id ?? 0, decision.revision)?.['sequence'] ?? 0);
    return { kind: 'duplicate', revision: decision.revision, sequence };
  }

  function clearCache(): void {
    nameIds.clear();
    pairs.clear();
    streams.clear();
  }

  return {
    begin() {
      const now = Number(selectVersion.get()?.['data_version']);
      if (now !== version) streams.clear();
      version = now;
    },
    one,
    together(writes, nowMs) {
      database.exec('savepoint several');
      const outcomes = writes.map((each) => one(each, nowMs));
      if (outcomes.some(isRejected)) {
        database.exec('rollback to several');
        clearCache();
      }
      database.exec('release several');
      return outcomes;
    },
    clearCache,
  };
}

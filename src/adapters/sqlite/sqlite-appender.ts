// Appends inside the writer's transaction: the decision is the common one, the rows are SQLite's.

import type { DatabaseSync } from 'node:sqlite';
import { decideAppend, type StreamState } from '../../store/expected-revision.ts';
import { categoryOf } from '../../store/recorded-event.ts';
import { decideRetention } from '../../store/retention.ts';
import type { RetentionChange, StreamWrite, WriteOutcome } from '../../store/store-engine.ts';

export interface SqliteAppender {
  append(writes: readonly StreamWrite[], nowMs: number): readonly WriteOutcome[];
  /** After a rollback, names that it had added are not there any more. */
  forgetNames(): void;
}

interface StreamRow {
  readonly id: number;
  state: StreamState;
}

export function createSqliteAppender(database: DatabaseSync): SqliteAppender {
  const prepare = (sql: string) => database.prepare(sql);
  const selectStream = prepare(
    `select id, revision, truncate_before, max_count, max_age_s, tombstoned
     from streams where name = ?`,
  );
  const insertStream = prepare('insert into streams (name) values (?)');
  const updateStream = prepare(
    'update streams set revision = ?, truncate_before = ?, tombstoned = ? where id = ?',
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
  const revisionOf = prepare('select revision from events where event_id = ? and stream_id = ?');
  const sequenceAt = prepare('select sequence from events where stream_id = ? and revision = ?');
  const insertName = prepare('insert or ignore into names (name) values (?)');
  const selectName = prepare('select id from names where name = ?');
  const insertPair = prepare(
    'insert or ignore into category_types (category_id, type_id) values (?, ?)',
  );
  const nameIds = new Map<string, number>();
  const pairs = new Set<string>();

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
    const row = selectStream.get(name);
    if (row === undefined) return undefined;
    return {
      id: Number(row['id']),
      state: {
        revision: Number(row['revision']),
        truncateBefore: Number(row['truncate_before']),
        ...(row['max_count'] === null ? {} : { maxCount: Number(row['max_count']) }),
        ...(row['max_age_s'] === null ? {} : { maxAgeSeconds: Number(row['max_age_s']) }),
        tombstoned: row['tombstoned'] === 1,
      },
    };
  }

  function findOrCreate(name: string): StreamRow {
    const found = find(name);
    if (found !== undefined) return found;
    const id = Number(insertStream.run(name).lastInsertRowid);
    return { id, state: { revision: -1, truncateBefore: 0, tombstoned: false } };
  }

  function decide(each: StreamWrite, stream: StreamRow | undefined) {
    const ids = each.rows.map((row) => row.eventId);
    return decideAppend(stream?.state, each.expected, ids, {
      idsFrom: (revision, count) =>
        stream === undefined
          ? []
          : idsFrom
              .all(stream.id, revision, revision + count - 1)
              .map((row) => String(row['event_id'])),
      revisionOf: (id) => {
        if (stream === undefined || stream.state.revision < 0) return undefined;
        const row = revisionOf.get(id, stream.id);
        return row === undefined ? undefined : Number(row['revision']);
      },
    });
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
    for (const row of each.rows) {
      revision += 1;
      const typeId = nameId(row.type);
      notePair(categoryId, typeId);
      const inserted = insertEvent.run(
        stream.id,
        revision,
        row.eventId,
        typeId,
        categoryId,
        nameIdOrNone(row.tenant === '' ? undefined : row.tenant),
        nowMs,
        row.payload,
        row.meta,
      );
      sequence = Number(inserted.lastInsertRowid);
    }
    const truncateBefore = revives ? stream.state.revision + 1 : stream.state.truncateBefore;
    updateStream.run(revision, truncateBefore, each.tombstone === true ? 1 : 0, stream.id);
    if (each.retention !== undefined) retain(each.retention);
    return { kind: 'appended', revision, sequence };
  }

  function nameIdOrNone(name: string | undefined): number {
    return name === undefined ? 0 : nameId(name);
  }

  function retain(change: RetentionChange): void {
    const stream = findOrCreate(change.of);
    const decision = decideRetention(stream.state, change);
    if (decision.kind !== 'retain') return;
    const { maxCount, maxAgeSeconds } = change.values;
    updateRetention.run(
      decision.truncateBefore,
      maxCount ?? null,
      maxAgeSeconds ?? null,
      stream.id,
    );
  }

  function appendOne(each: StreamWrite, nowMs: number): WriteOutcome {
    if (each.retention !== undefined) {
      const retained = decideRetention(find(each.retention.of)?.state, each.retention);
      if (retained.kind !== 'retain') return retained;
    }
    const stream = find(each.stream);
    const decision = decide(each, stream);
    if (decision.kind === 'conflict' || decision.kind === 'deleted') return decision;
    if (decision.kind === 'append') {
      return write(each, stream, { revives: decision.revives, nowMs });
    }
    const sequence = Number(sequenceAt.get(stream?.id ?? 0, decision.revision)?.['sequence'] ?? 0);
    return { kind: 'repeated', revision: decision.revision, sequence };
  }

  return {
    append(writes, nowMs) {
      const [only] = writes;
      if (only !== undefined && writes.length === 1) return [appendOne(only, nowMs)];
      // Several streams: a refusal of one takes back what the others wrote.
      database.exec('savepoint several');
      const outcomes = writes.map((each) => appendOne(each, nowMs));
      const refused = outcomes.some(({ kind }) => kind === 'conflict' || kind === 'deleted');
      if (refused) {
        database.exec('rollback to several');
        nameIds.clear();
        pairs.clear();
      }
      database.exec('release several');
      return outcomes;
    },
    forgetNames() {
      nameIds.clear();
      pairs.clear();
    },
  };
}

// Batches concurrent appends: one statement, one commit and one fsync per batch, with a separate decision for
// every append.

import { MillraceError } from '../../../foundation/error.ts';
import { tailRows, type TailRow } from '../../../store/append-tail.ts';
import { isRejected } from '../../../store/expected-revision.ts';
import { categoryOf } from '../../../store/stream-category.ts';
import type { StreamWrite, WriteOptions, WriteOutcome } from '../../../store/store-engine.ts';
import { createKeptClient } from '../connection/kept-client.ts';
import {
  encodeEvent,
  encodeUnits,
  encodeWrite,
  outcomesOf,
  plainWrite,
  type Unit,
} from './append-parameters.ts';
import {
  isTransient,
  translateErrors,
  unavailable,
  type PostgresConnection,
  type Queryable,
} from '../connection/connection.ts';
import { lockClass, quoteName } from '../connection/schema.ts';
import type { NameNumbers, PostgresNames } from './names.ts';

export interface PostgresAppender {
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  /** Resolves when all appends have their outcomes. */
  drain(): Promise<void>;
}

const appendLimits = {
  /** The most concurrent batches: the second one is collected and sent while the first one commits. */
  batchesInFlightMax: 2,
  unitsPerBatchMax: 500,
  eventsPerBatchMax: 5_000,
  bytesPerBatchMax: 8 * 1_048_576,
  waitingMax: 10_000,
  streamsKnownMax: 10_000,
  /** The most retries of a batch whose connection broke; the event ids make a retry safe. */
  attemptsMax: 4,
} as const;

interface Waiting {
  readonly unit: Unit;
  readonly resolve: (outcomes: readonly WriteOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

export function createPostgresAppender(
  connection: PostgresConnection,
  names: PostgresNames,
  options: {
    readonly schema: string;
    readonly channel: string;
    readonly now: () => number;
    readonly sleep: (ms: number) => Promise<void>;
    /** Receives the appended rows whose positions are known, in order; `isAll` if no other rows were appended. */
    readonly onCommit: (rows: readonly TailRow[], isAll: boolean) => void;
    readonly onFailure: () => void;
  },
): PostgresAppender {
  const at = quoteName(options.schema);
  const sql = {
    name: `${options.schema} append`,
    text: `select outcome, revision, sequence from ${at}.append_events(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
  };
  const oneSql = {
    name: `${options.schema} append one`,
    text: `select outcome, revision, sequence from ${at}.append_to_stream(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
  };
  const eventSql = {
    name: `${options.schema} append event`,
    text: `select ${at}.append_event(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
  };
  const lock = lockClass(options.schema);
  const keptClient = createKeptClient(connection.pool);
  const waiting: Waiting[] = [];
  const batches = new Set<Promise<void>>();
  let scheduled = false;

  /** Streams that have a committed row. A stream that is missing here costs one slower append. */
  const knownStreams = new Set<string>();

  async function append(
    units: readonly Unit[],
    nowMs: number,
    on?: Queryable,
  ): Promise<WriteOutcome[][]> {
    const plain = plainWrite(units);
    const idOf = await names.intern(namesOf(units), on);
    await names.recordPairs(pairsOf(units, idOf), on);
    const isNew = (stream: string): boolean => !knownStreams.has(stream);
    const [statement, parameters] =
      plain === undefined
        ? [sql, encodeUnits(units, idOf, isNew)]
        : plain.rows.length === 1 && on === undefined
          ? [eventSql, encodeEvent(plain, idOf, isNew)]
          : [oneSql, encodeWrite(plain, idOf, isNew)];
    const values = [lock, options.channel, nowMs, ...parameters];
    try {
      const rows = await (on === undefined
        ? keptClient.use((client) => connection.query(statement, values, client))
        : connection.query(statement, values, on));
      if (on === undefined) {
        if (knownStreams.size >= appendLimits.streamsKnownMax) knownStreams.clear();
        for (const { stream } of units.flat()) knownStreams.add(stream);
      }
      return outcomesOf(units, rows);
    } catch (error) {
      knownStreams.clear();
      options.onFailure();
      throw error;
    }
  }

  async function appendWithRetries(
    units: readonly Unit[],
    nowMs: number,
  ): Promise<WriteOutcome[][]> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await append(units, nowMs);
      } catch (error) {
        if (!isTransient(error) || attempt === appendLimits.attemptsMax) throw error;
        await options.sleep(50 * 2 ** attempt);
      }
    }
  }

  async function runBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const units = batch.map(({ unit }) => unit);
      const nowMs = options.now();
      const outcomes = await appendWithRetries(units, nowMs);
      const { rows, isAll } = knownRows(units, outcomes, nowMs);
      options.onCommit(rows, isAll);
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] ?? []);
    } catch (error) {
      if (batch.length === 1 || isTransient(error)) {
        for (const { reject } of batch) reject(unavailable(error));
        return;
      }
      // One append caused the failure: run each append separately, so that the others succeed.
      for (const single of batch) await runBatch([single]);
    }
  }

  function pump(): void {
    scheduled = false;
    while (waiting.length > 0 && batches.size < appendLimits.batchesInFlightMax) {
      const running = runBatch(takeBatch(waiting)).finally(() => {
        batches.delete(running);
        pump();
      });
      batches.add(running);
    }
  }

  return {
    async write(writes, { transaction }) {
      if (transaction !== undefined) {
        const on = transaction as Queryable;
        const [outcomes = []] = await translateErrors(() => append([writes], options.now(), on));
        return outcomes;
      }
      if (waiting.length >= appendLimits.waitingMax) {
        throw new MillraceError(
          'STORE_UNAVAILABLE',
          `append queue is full: ${appendLimits.waitingMax} appends are waiting. Retry later.`,
        );
      }
      return new Promise((resolve, reject) => {
        waiting.push({ unit: writes, resolve, reject });
        // Wait for the microtasks: the next appends of all callers that just got outcomes form one batch.
        if (!scheduled) process.nextTick(pump);
        scheduled = true;
      });
    },
    async drain() {
      while (waiting.length > 0 || batches.size > 0) {
        pump();
        await Promise.all(batches);
      }
      keptClient.release();
    },
  };
}

/** Selects appends of a single event: the positions of several events need not be consecutive. */
function knownRows(
  units: readonly Unit[],
  outcomes: readonly (readonly WriteOutcome[])[],
  nowMs: number,
): { readonly rows: readonly TailRow[]; readonly isAll: boolean } {
  let isAll = true;
  const rows = units.flatMap((unit, at) => {
    const [outcome] = outcomes[at] ?? [];
    const [write] = unit;
    if (outcome?.kind === 'appended' && unit.length === 1 && write?.rows.length === 1) {
      return tailRows(write, nowMs, outcome);
    }
    // A duplicate may be an append of this process whose response was lost.
    isAll &&= outcome !== undefined && isRejected(outcome);
    return [];
  });
  return { rows: rows.toSorted((a, b) => a.sequence - b.sequence), isAll };
}

function takeBatch(waiting: Waiting[]): Waiting[] {
  if (waiting.length === 1) return waiting.splice(0);
  let events = 0;
  let bytes = 0;
  let count = 0;
  const ids = new Set<string>();
  for (const { unit } of waiting) {
    // The database finds duplicates among stored events only, so a duplicate must go into a later batch.
    if (count > 0 && unit.some(({ rows }) => rows.some((row) => ids.has(row.eventId)))) break;
    for (const { rows } of unit) {
      events += rows.length;
      for (const row of rows) {
        bytes += row.payload.length + row.meta.length;
        ids.add(row.eventId);
      }
    }
    const full =
      events > appendLimits.eventsPerBatchMax ||
      bytes > appendLimits.bytesPerBatchMax ||
      count === appendLimits.unitsPerBatchMax;
    // An append that exceeds the limits by itself forms a batch alone.
    if (full && count > 0) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

function* namesOf(units: readonly Unit[]): Generator<string> {
  for (const unit of units) {
    for (const { stream, rows } of unit) {
      const category = categoryOf(stream);
      if (category !== undefined) yield category;
      for (const row of rows) {
        yield row.type;
        if (row.tenant !== '') yield row.tenant;
      }
    }
  }
}

function* pairsOf(units: readonly Unit[], idOf: NameNumbers): Generator<readonly [number, number]> {
  const seen = new Set<string>();
  for (const unit of units) {
    for (const { stream, rows } of unit) {
      const category = idOf(categoryOf(stream));
      for (const row of rows) {
        const type = idOf(row.type);
        const pair = `${category} ${type}`;
        if (!seen.has(pair)) yield [category, type];
        seen.add(pair);
      }
    }
  }
}

// Appends that arrive together go to the database together: one statement, one commit, one fsync
// for all of them, each decided on its own.

import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { tailRows, type TailRow } from '../../store/append-tail.ts';
import { categoryOf } from '../../store/recorded-event.ts';
import type { StreamWrite, WriteOptions, WriteOutcome } from '../../store/store-engine.ts';
import { createKeptClient } from './kept-client.ts';
import { createRecentSet } from './recent-set.ts';
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
  unavailable,
  type PostgresConnection,
  type Queryable,
} from './postgres-connection.ts';
import type { NameNumbers, PostgresNames } from './postgres-names.ts';
import { lockClass, quoteName } from './postgres-schema.ts';

export interface PostgresAppender {
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  /** Resolves when everything that was asked for has been answered. */
  drain(): Promise<void>;
}

const appendLimits = {
  /** Batches under way at once: the second is collected and sent while the first commits. */
  batchesInFlightMax: 2,
  unitsPerBatchMax: 500,
  eventsPerBatchMax: 5_000,
  bytesPerBatchMax: 8 * 1_048_576,
  waitingMax: 10_000,
  streamsRememberedMax: 10_000,
  shapesRememberedMax: 1_000,
  /** Tries of a batch whose connection broke; the event ids make a repeat harmless. */
  triesMax: 4,
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
    /** What was appended, as far as it is known where it is, in order; `isAll`: as far as there is. */
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
    isText: true,
  } as const;
  const lock = lockClass(options.schema);
  const kept = createKeptClient(connection.pool);
  const waiting: Waiting[] = [];
  const batches = new Set<Promise<void>>();
  let scheduled = false;

  /** Streams that have a row: in a caller's transaction they may only seem to. */
  const streamsThere = createRecentSet(appendLimits.streamsRememberedMax);
  const shapesKnown = createRecentSet(appendLimits.shapesRememberedMax);

  async function append(
    units: readonly Unit[],
    nowMs: number,
    on?: Queryable,
  ): Promise<WriteOutcome[][]> {
    const plain = plainWrite(units);
    const shape = shapeOf(plain);
    // What one event after the other brings is known; only what is new is asked for.
    if (shape === undefined || !shapesKnown.has(shape)) {
      await names.notePairs(pairsOf(units, await names.intern(namesOf(units), on)), on);
      if (shape !== undefined) shapesKnown.add(shape);
    }
    const idOf = names.numberOf;
    const isNew = (stream: string): boolean => !streamsThere.has(stream);
    const [statement, parameters] =
      plain === undefined
        ? [sql, encodeUnits(units, idOf, isNew)]
        : plain.rows.length === 1 && on === undefined
          ? [eventSql, encodeEvent(plain, idOf, isNew)]
          : [oneSql, encodeWrite(plain, idOf, isNew)];
    const values = [lock, options.channel, nowMs, ...parameters];
    try {
      const rows = await (on === undefined
        ? kept.use((client) => connection.query(statement, values, client))
        : connection.query(statement, values, on));
      if (on === undefined) for (const { stream } of units.flat()) streamsThere.add(stream);
      return outcomesOf(units, rows);
    } catch (error) {
      streamsThere.clear();
      options.onFailure();
      throw error;
    }
  }

  async function appendAgain(units: readonly Unit[], nowMs: number): Promise<WriteOutcome[][]> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await append(units, nowMs);
      } catch (error) {
        if (!isTransient(error) || attempt === appendLimits.triesMax) throw error;
        await options.sleep(50 * 2 ** attempt);
      }
    }
  }

  async function runBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const units = batch.map(({ unit }) => unit);
      const nowMs = options.now();
      const outcomes = await appendAgain(units, nowMs);
      const { rows, isAll } = knownRows(units, outcomes, nowMs);
      options.onCommit(rows, isAll);
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] ?? []);
    } catch (error) {
      if (batch.length === 1 || isTransient(error)) {
        for (const { reject } of batch) reject(unavailable(error));
        return;
      }
      // One of them is at fault: each alone, so that nobody fails for another's sake.
      for (const each of batch) await runBatch([each]);
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
    async write(writes, { signal, transaction }) {
      if (signal?.aborted === true) throw aborted(signal);
      if (transaction !== undefined) {
        try {
          return (await append([writes], options.now(), transaction as Queryable))[0] ?? [];
        } catch (error) {
          throw unavailable(error);
        }
      }
      if (waiting.length >= appendLimits.waitingMax) {
        throw new MillraceError(
          'STORE_UNAVAILABLE',
          `more than ${appendLimits.waitingMax} appends are waiting`,
        );
      }
      return new Promise((resolve, reject) => {
        waiting.push({ unit: writes, resolve, reject });
        // Behind the microtasks: what all the callers that were just answered ask for goes together.
        if (!scheduled) process.nextTick(pump);
        scheduled = true;
      });
    },
    async drain() {
      while (waiting.length > 0 || batches.size > 0) {
        pump();
        await Promise.all(batches);
      }
      kept.release();
    },
  };
}

/** Only single events: the numbers of several need not follow each other. */
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
    // A repeat may be of an append of ours whose answer was lost.
    isAll &&= outcome?.kind === 'conflict' || outcome?.kind === 'deleted';
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
    // The database finds a repeat among the events that are there: it has to be in a later batch.
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
    // One that is too large by itself still goes, alone.
    if (full && count > 0) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

/** Of a single event: its category, type and tenant, which have numbers once they were seen. */
function shapeOf(plain: StreamWrite | undefined): string | undefined {
  const [row] = plain?.rows ?? [];
  if (plain === undefined || row === undefined || plain.rows.length > 1) return undefined;
  return `${categoryOf(plain.stream) ?? ''}\n${row.type}\n${row.tenant}`;
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

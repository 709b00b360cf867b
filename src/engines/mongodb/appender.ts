// Batches concurrent appends into one commit of the log, with a separate decision for every append. One commit
// runs at a time; appends that arrive during a commit form the next batch.

import { randomUUID } from 'node:crypto';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type {
  RowToWrite,
  StreamWrite,
  WriteOptions,
  WriteOutcome,
} from '../../store/store-engine.ts';
import type { CommitLog } from './commit-log.ts';
import { decideBatch, type DecidedBatch } from './decide-batch.ts';
import { bytesAtMost, documentLimits } from './event-document.ts';
import { loadKnownStreams, streamsOfUnits, type Unit } from './known-streams.ts';
import { isTransient, unavailable } from './connection.ts';
import type { EventDocument, LogPoint, MongodbCollections } from './collections.ts';
import type { MongodbEventTypes } from './event-types.ts';
import type { StreamStates } from './stream-states.ts';

export interface MongodbAppender {
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  /** Resolves when all appends have their outcomes. */
  drain(): Promise<void>;
}

const appendLimits = {
  unitsPerCommitMax: 500,
  eventsPerCommitMax: 5_000,
  /** The largest size of events in one commit document; larger commits are stored in parts of this size. */
  portionBytesMax: 8 * 1_048_576,
  waitingMax: 10_000,
  /** How long a commit without a response is retried; the event ids make a retry safe. */
  retryMs: 10_000,
  pauseMsMax: 1_000,
  /** After this many lost races for a number, the writer claims the next number. */
  racesBeforeClaim: 3,
  /** The most lost races of an append; only a corrupted log reaches this limit. */
  racesMax: 1_000,
} as const;

interface Waiting {
  readonly unit: Unit;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (outcomes: readonly WriteOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Decision {
  readonly basis: LogPoint;
  readonly decided: DecidedBatch;
}

/** A commit whose response did not arrive. */
interface UnconfirmedCommit {
  readonly commit: number;
  readonly decided: DecidedBatch;
}

export interface AppenderParts {
  readonly collections: MongodbCollections;
  readonly log: CommitLog;
  readonly states: StreamStates;
  readonly types: MongodbEventTypes;
  readonly now: () => number;
}

export function createMongodbAppender(parts: AppenderParts): MongodbAppender {
  const { collections, log, states, types } = parts;
  const waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let scheduled = false;

  /** Decides on the state at the end of the log; queries the database only for missing parts of the state. */
  async function decide(
    units: readonly Unit[],
    by: string,
    mustQuery: boolean,
  ): Promise<Decision | undefined> {
    const streams = streamsOfUnits(units);
    const recordedAt = new Date(parts.now());
    const at = (basis: LogPoint) => ({ position: basis.position + 1, recordedAt });
    if (!mustQuery && !log.isClaimed) {
      const basis = log.end;
      const known = states.known(streams);
      const all =
        known === undefined
          ? undefined
          : await loadKnownStreams(collections, units, known, 'states only');
      const decided = all === undefined ? undefined : decideBatch(units, all, at(basis));
      // Only a successful insert proves that the cached state is current: a rejection needs a fresh read.
      if (decided?.isAllAppended === true) return { basis, decided };
    }
    await log.advance();
    await log.turnOf(by);
    const basis = log.head;
    const known = await states.load(streams, basis);
    const all = await loadKnownStreams(collections, units, known, basis);
    // Another process committed during the queries: the state is outdated.
    if (log.end.commit !== basis.commit || all === undefined) return undefined;
    return { basis, decided: decideBatch(units, all, at(basis)) };
  }

  async function commitUnits(units: readonly Unit[]): Promise<DecidedBatch['outcomes']> {
    const by = randomUUID();
    let mustQuery = false;
    let failures = 0;
    const retryUntil = performance.now() + appendLimits.retryMs;
    let unconfirmed: UnconfirmedCommit | undefined;
    let hasClaimed = false;
    let races = 0;
    while (races < appendLimits.racesMax) {
      try {
        if (unconfirmed !== undefined && (await log.isOurs(unconfirmed.commit, by))) {
          return unconfirmed.decided.outcomes;
        }
        unconfirmed = undefined;
        const decision = await decide(units, by, mustQuery);
        if (decision !== undefined) {
          const { basis, decided } = decision;
          if (decided.events.length === 0) {
            if (hasClaimed) await releaseClaim(basis, by);
            return decided.outcomes;
          }
          unconfirmed = { commit: basis.commit + 1, decided };
          if (await commit(units, by, decision)) return decided.outcomes;
          unconfirmed = undefined;
        }
        mustQuery = true;
        races += 1;
        if (races % appendLimits.racesBeforeClaim === 0) {
          await log.claim(by, new Date(parts.now()));
          hasClaimed = true;
        } else await systemClock.sleep(Math.random() * 2 ** (races % 5));
      } catch (error) {
        if (!isTransient(error) || performance.now() > retryUntil) throw error;
        failures += 1;
        mustQuery = true;
        await systemClock.sleep(Math.min(50 * 2 ** failures, appendLimits.pauseMsMax));
      }
    }
    throw new MillraceError(
      'STORE_UNAVAILABLE',
      `append failed: other writers committed ${appendLimits.racesMax} times before it`,
    );
  }

  async function commit(
    units: readonly Unit[],
    by: string,
    { basis, decided }: Decision,
  ): Promise<boolean> {
    const { events } = decided;
    await types.add(events.map(({ eventType }) => eventType));
    const at = events[0]?.recordedAt ?? new Date(parts.now());
    const rows = units.flat().flatMap((write) => write.rows);
    const bytes = rows.reduce((sum, { payload, meta }) => sum + payload.length + meta.length, 0);
    const batch = { by, at, events, bytes, portions: portionsOf(events, rows) };
    return log.commit(basis, batch, () => states.apply(decided.states));
  }

  /** An empty commit ends a claim that is no longer needed, so that other writers do not wait. */
  async function releaseClaim(basis: LogPoint, by: string): Promise<void> {
    const at = new Date(parts.now());
    await log.commit(basis, { by, at, events: [], bytes: 0, portions: [] }, () => undefined);
  }

  async function runBatch(batch: readonly Waiting[], queued = waiting): Promise<void> {
    try {
      const outcomes = await commitUnits(batch.map(({ unit }) => unit));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] ?? []);
    } catch (error) {
      const isOutage = isTransient(error);
      if (isOutage || batch.length === 1) {
        // Fail the queued appends immediately: in an outage they would fail too, only later.
        const failed = isOutage ? [...batch, ...queued.splice(0)] : batch;
        for (const { reject } of failed) reject(unavailable(error));
        return;
      }
      // One append caused the failure: run each append separately, so that the others succeed.
      const left = [...batch];
      for (let single = left.shift(); single !== undefined; single = left.shift()) {
        await runBatch([single], left);
      }
    }
  }

  function pump(): void {
    scheduled = false;
    if (running !== undefined) return;
    const batch = takeBatch(waiting);
    if (batch.length === 0) return;
    running = runBatch(batch).finally(() => {
      running = undefined;
      pump();
    });
  }

  return {
    async write(writes, { signal }) {
      for (const { rows } of writes)
        for (const row of rows) checkSize(row.eventId, bytesAtMost(row));
      if (waiting.length >= appendLimits.waitingMax) {
        throw new MillraceError(
          'STORE_UNAVAILABLE',
          `append queue is full: ${appendLimits.waitingMax} appends are waiting. Retry later.`,
        );
      }
      return new Promise((resolve, reject) => {
        waiting.push({ unit: writes, signal, resolve, reject });
        // Appends of one turn of the event loop form one batch.
        if (!scheduled) setImmediate(pump);
        scheduled = true;
      });
    },
    async drain() {
      while (waiting.length > 0 || running !== undefined) {
        pump();
        await running;
      }
    },
  };
}

function checkSize(eventId: string, bytes: number): void {
  if (bytes <= documentLimits.documentBytesMax) return;
  throw new MillraceError(
    'PAYLOAD_TOO_LARGE',
    `event ${eventId} may take ${bytes} bytes. A MongoDB document has room for ${documentLimits.documentBytesMax}.`,
    { details: { eventId, bytes, documentBytesMax: documentLimits.documentBytesMax } },
  );
}

/** The appends of the next commit; an append that exceeds the limits by itself forms a commit alone. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  const batch: Waiting[] = [];
  let events = 0;
  let bytes = 0;
  while (waiting.length > 0 && batch.length < appendLimits.unitsPerCommitMax) {
    const next = waiting[0] as Waiting;
    if (next.signal?.aborted === true) {
      waiting.shift();
      next.reject(aborted(next.signal));
      continue;
    }
    for (const { rows } of next.unit) {
      events += rows.length;
      for (const row of rows) bytes += bytesAtMost(row);
    }
    const isFull = events > appendLimits.eventsPerCommitMax || bytes > appendLimits.portionBytesMax;
    if (isFull && batch.length > 0) break;
    waiting.shift();
    batch.push(next);
  }
  return batch;
}

/** Splits the events of a commit into groups that fit into one document each; usually one group. */
function portionsOf(
  events: readonly EventDocument[],
  rows: readonly RowToWrite[],
): readonly (readonly EventDocument[])[] {
  const bytesOf = new Map<string, number>();
  for (const row of rows) {
    bytesOf.set(row.eventId, Math.max(bytesAtMost(row), bytesOf.get(row.eventId) ?? 0));
  }
  const portions: EventDocument[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const size = bytesOf.get(event._id) ?? documentLimits.documentBytesMax;
    if (bytes + size > appendLimits.portionBytesMax) {
      portions.push([]);
      bytes = 0;
    }
    bytes += size;
    portions.at(-1)?.push(event);
  }
  return portions;
}

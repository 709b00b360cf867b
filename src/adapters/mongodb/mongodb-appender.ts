// Appends that arrive together become one commit of the log, each decided on its own. One commit is
// under way at a time; what arrives meanwhile is the next.

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
import type { LogPoint } from './commit-number.ts';
import { decideBatch, type DecidedBatch } from './decide-batch.ts';
import { bytesAtMost, documentLimits } from './event-document.ts';
import { loadKnownStreams, streamsOfUnits, type Unit } from './known-streams.ts';
import { isTransient, unavailable } from './mongodb-connection.ts';
import type { EventDocument, MongodbCollections } from './mongodb-schema.ts';
import type { MongodbTypes } from './mongodb-types.ts';
import type { StreamStates } from './stream-states.ts';

export interface MongodbAppender {
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  /** Resolves when everything that was asked for has been answered. */
  drain(): Promise<void>;
}

const appendLimits = {
  unitsPerCommitMax: 500,
  eventsPerCommitMax: 5_000,
  /** Of what a commit's events take at most; more is laid out in parts of this size. */
  portionBytesMax: 8 * 1_048_576,
  waitingMax: 10_000,
  /** How long a commit is tried again whose answer did not come; ids make a repeat harmless. */
  tryMs: 10_000,
  pauseMsMax: 1_000,
  /** Times that others may be faster before we claim the next number. */
  lostBeforeClaim: 3,
  /** Times that others may be faster in all; it takes a log that somebody tampered with. */
  lostMax: 1_000,
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

/** A commit whose answer did not come. */
interface Unanswered {
  readonly commit: number;
  readonly decided: DecidedBatch;
}

export interface AppenderParts {
  readonly collections: MongodbCollections;
  readonly log: CommitLog;
  readonly states: StreamStates;
  readonly types: MongodbTypes;
  readonly now: () => number;
}

export function createMongodbAppender(parts: AppenderParts): MongodbAppender {
  const { collections, log, states, types } = parts;
  const waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let scheduled = false;

  /** Decides on what is known at the end of the log, asking the database only for what is missing. */
  async function decide(
    units: readonly Unit[],
    by: string,
    mustLook: boolean,
  ): Promise<Decision | undefined> {
    const streams = streamsOfUnits(units);
    const recordedAt = new Date(parts.now());
    const at = (basis: LogPoint) => ({ position: basis.position + 1, recordedAt });
    if (!mustLook && !log.isClaimed) {
      const basis = log.end;
      const known = states.known(streams);
      const all =
        known === undefined
          ? undefined
          : await loadKnownStreams(collections, units, known, 'states only');
      const decided = all === undefined ? undefined : decideBatch(units, all, at(basis));
      // Only an insert proves that nothing happened meanwhile: who is refused has a right to a look.
      if (decided?.isRefusing === false) return { basis, decided };
    }
    await log.advance();
    await log.turnOf(by);
    const basis = log.head;
    const known = await states.load(streams, basis);
    const all = await loadKnownStreams(collections, units, known, basis);
    // Somebody committed while we were looking: what we know is not the end any more.
    if (log.end.commit !== basis.commit || all === undefined) return undefined;
    return { basis, decided: decideBatch(units, all, at(basis)) };
  }

  async function commitUnits(units: readonly Unit[]): Promise<DecidedBatch['outcomes']> {
    const by = randomUUID();
    let mustLook = false;
    let failures = 0;
    const lastTryAt = performance.now() + appendLimits.tryMs;
    let unanswered: Unanswered | undefined;
    let hasClaimed = false;
    let lost = 0;
    while (lost < appendLimits.lostMax) {
      try {
        if (unanswered !== undefined && (await log.isOurs(unanswered.commit, by))) {
          return unanswered.decided.outcomes;
        }
        unanswered = undefined;
        const decision = await decide(units, by, mustLook);
        if (decision !== undefined) {
          const { basis, decided } = decision;
          if (decided.events.length === 0) {
            if (hasClaimed) await giveBack(basis, by);
            return decided.outcomes;
          }
          unanswered = { commit: basis.commit + 1, decided };
          if (await commit(units, by, decision)) return decided.outcomes;
          unanswered = undefined;
        }
        mustLook = true;
        lost += 1;
        if (lost % appendLimits.lostBeforeClaim === 0) {
          await log.claim(by, new Date(parts.now()));
          hasClaimed = true;
        } else await systemClock.sleep(Math.random() * 2 ** (lost % 5));
      } catch (error) {
        if (!isTransient(error) || performance.now() > lastTryAt) throw error;
        failures += 1;
        mustLook = true;
        await systemClock.sleep(Math.min(50 * 2 ** failures, appendLimits.pauseMsMax));
      }
    }
    throw new MillraceError(
      'STORE_UNAVAILABLE',
      `others committed ${appendLimits.lostMax} times while this append was waiting for its turn`,
    );
  }

  async function commit(
    units: readonly Unit[],
    by: string,
    { basis, decided }: Decision,
  ): Promise<boolean> {
    const { events } = decided;
    await types.note(events.map(({ eventType }) => eventType));
    const at = events[0]?.recordedAt ?? new Date(parts.now());
    const rows = units.flat().flatMap((write) => write.rows);
    const bytes = rows.reduce((sum, { payload, meta }) => sum + payload.length + meta.length, 0);
    const batch = { by, at, events, bytes, portions: portionsOf(events, rows) };
    return log.commit(basis, batch, () => states.apply(decided.states));
  }

  /** A turn that was asked for and is not needed after all: nobody has to wait for us. */
  async function giveBack(basis: LogPoint, by: string): Promise<void> {
    const at = new Date(parts.now());
    await log.commit(basis, { by, at, events: [], bytes: 0, portions: [] }, () => undefined);
  }

  async function runBatch(batch: readonly Waiting[], behind = waiting): Promise<void> {
    try {
      const outcomes = await commitUnits(batch.map(({ unit }) => unit));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index] ?? []);
    } catch (error) {
      const isAway = isTransient(error);
      if (isAway || batch.length === 1) {
        // Whoever waits behind them would find out the same, only later.
        const told = isAway ? [...batch, ...behind.splice(0)] : batch;
        for (const { reject } of told) reject(unavailable(error));
        return;
      }
      // One of them is at fault: each alone, so that nobody fails for another's sake.
      const left = [...batch];
      for (let each = left.shift(); each !== undefined; each = left.shift()) {
        await runBatch([each], left);
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
      if (signal?.aborted === true) throw aborted(signal);
      for (const { rows } of writes)
        for (const row of rows) checkSize(row.eventId, bytesAtMost(row));
      if (waiting.length >= appendLimits.waitingMax) {
        throw new MillraceError(
          'STORE_UNAVAILABLE',
          `more than ${appendLimits.waitingMax} appends are waiting`,
        );
      }
      return new Promise((resolve, reject) => {
        waiting.push({ unit: writes, signal, resolve, reject });
        // What arrives within one turn of the event loop belongs together.
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
    `event ${eventId} takes up to ${bytes} bytes, and MongoDB has room for ${documentLimits.documentBytesMax} in a document`,
    { details: { eventId, bytes, documentBytesMax: documentLimits.documentBytesMax } },
  );
}

/** The next commit's appends; one that is too large by itself still goes, alone. */
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

/** Cuts a commit's events into what fits into a document each; mostly that is one. */
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

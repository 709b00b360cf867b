// The bus in an SQLite file: no server, several processes. Writes go through the writer thread, which
// commits all that wait together.

import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Bus, StartFrom } from '../../../bus/bus.ts';
import type {
  Appended,
  BusEngine,
  EngineEntry,
  FetchRequest,
  GroupSettings,
  LeasedEntry,
  StoredEntry,
} from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { createBus, type BusOptions } from '../../../bus/create-bus.ts';
import { groupConflict, unknownGroup } from '../../../bus/group-errors.ts';
import { aborted, systemClock } from '../../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { holdClaim, isClaimedText } from '../sqlite-bus-claim.ts';
import { createEarlyReaders } from '../sqlite-bus-early.ts';
import { openSqliteBusReader, toStored } from './reader.ts';
import { createBusTail } from './tail.ts';
import { createBusWaits } from './waits.ts';
import type { BusAnswer, BusRequest, BusStart } from './writer.ts';
import { describeFailure, sqliteError } from '../connection/error.ts';
import { pathOf } from '../connection/path.ts';
import { watchSqlite } from '../connection/watch.ts';
import { startSqliteWriter, type SqliteWriter, type SqlRow } from '../thread/writer.ts';

export interface SqliteBusOptions extends BusOptions {
  /** How long a write waits for another process's write. Default: 10 s. */
  readonly busyTimeoutMs?: number | undefined;
}

/** Looked at by file events; this is for file systems that have none. */
const watchPollMs = 250;

/** A write that is not answered so long after the last one waits for something. */
const answerMs = 20;

/**
 * Opens (and, where it is new, creates) the bus in a file; it may be the event store's. Several processes
 * may open one file.
 *
 * @example
 * import { sqliteBus } from 'millrace/adapters/sqlite';
 *
 * await using bus = await sqliteBus('sqlite:.millrace/bus.db');
 * await bus.publish({ subject: 'gbe.events.system.health', payload: { ok: true } });
 */
export async function sqliteBus(url: string, options: SqliteBusOptions = {}): Promise<Bus> {
  const { busyTimeoutMs = 10_000 } = options;
  const path = pathOf(url);
  mkdirSync(dirname(path), { recursive: true });
  const writer = await startSqliteWriter({ path, busyTimeoutMs });
  const closing = async (): Promise<void> => writer[Symbol.asyncDispose]();
  return sqliteBusIn({ path, writer, closing }, options);
}

/** A file with a writer thread; the thread goes on after the bus is closed, unless `closing` ends it. */
export interface SqliteBusFile {
  readonly path: string;
  readonly writer: SqliteWriter;
  readonly closing?: () => Promise<void>;
}

/** The bus in a file that is open. */
export function sqliteBusIn(file: SqliteBusFile, options: SqliteBusOptions = {}): Bus {
  return createBus(createEngine(file, options), options);
}

function createEngine(
  { path, writer, closing = async () => undefined }: SqliteBusFile,
  { busyTimeoutMs = 10_000, clock = systemClock }: SqliteBusOptions,
): BusEngine {
  const tail = createBusTail();
  const early = createEarlyReaders();
  let claims: { readonly lock: Disposable; readonly token: string; count: number } | undefined;
  const reader = openSqliteBusReader(path, busyTimeoutMs);
  let version = reader.dataVersion();
  const others = watchSqlite({
    path,
    pollIntervalMs: watchPollMs,
    hasMore() {
      const before = version;
      version = reader.dataVersion();
      return version !== before;
    },
    onMore: () => waits.byOthers({ isForReaders: !isAnswerNear() }),
  });
  const waits = createBusWaits(clock, (isAnybody) => others.setWaiting(isAnybody));
  let isClosed = false;
  let appending = 0;
  let answeredAtMs = 0;

  /**
   * While appends are answered one after the other, the commit that is seen first is mostly their own, and its
   * answer wakes all readers. One that waits for another process's lock keeps nobody from looking.
   */
  function isAnswerNear(): boolean {
    return appending > 0 && clock.now() - answeredAtMs < answerMs;
  }

  async function write<R extends BusRequest>(
    request: R,
    onCommitted: (answer: BusAnswer<R>) => void = () => waits.all(),
  ): Promise<BusAnswer<R>> {
    try {
      const answer = await writer.bus(request, (committed) =>
        onCommitted(committed as BusAnswer<R>),
      );
      return answer as BusAnswer<R>;
    } catch (error) {
      throw busError(error);
    }
  }

  /** What is gone from the file is not given out of memory. */
  function writeLess<R extends BusRequest>(request: R): Promise<BusAnswer<R>> {
    return write(request, () => {
      tail.forget();
      waits.all();
    });
  }

  async function append(
    entries: readonly EngineEntry[],
    { dedupeWindowMs, isRelaxed, isEarly }: Parameters<BusEngine['append']>[1],
  ): Promise<readonly Appended[]> {
    const nowMs = clock.now();
    let isTold = false;
    const tell = (): void => {
      if (!isTold) appending -= 1;
      isTold = true;
      answeredAtMs = clock.now();
      waits.appended(entries.map(({ subject }) => subject));
    };
    appending += 1;
    const own = early.append(entries, { isEarly });
    try {
      const answered = write(
        { op: 'append', entries, dedupeWindowMs, nowMs, isRelaxed, claim: claims?.token },
        (appended) => {
          tail.add(entries, appended, { storedAtMs: nowMs });
          own.settled(tail.last);
          tell();
        },
      );
      own.tell();
      return await answered;
    } finally {
      own.settled(0);
      // Also when nothing was stored: who left it to this answer must look for what others wrote.
      if (!isTold) tell();
    }
  }

  function read<T>(work: () => T): T {
    if (isClosed) throw new MillraceError('BUS_CLOSED', 'the bus was closed');
    try {
      return work();
    } catch (error) {
      throw busError(sqliteError(describeFailure(error), { path, doing: 'read' }));
    }
  }

  async function fetch(
    { name: group, filters }: GroupSettings,
    { limit, waitMs, signal }: FetchRequest,
  ): Promise<readonly LeasedEntry[]> {
    const deadlineMs = clock.now() + waitMs;
    for (;;) {
      if (signal.aborted) throw aborted(signal);
      const nowMs = clock.now();
      // Looked at without the writer first: whoever waits must not take the write lock for nothing.
      const dueMs = read(() => reader.dueAtMs(group, nowMs));
      if (dueMs === 0) {
        const { isUnknown, rows } = await write({ op: 'fetch', group, limit, nowMs }, () =>
          waits.changed(group),
        );
        if (isUnknown) throw unknownGroup(group);
        if (rows.length > 0) return rows.map(toLeased);
      }
      const leftMs = deadlineMs - clock.now();
      if (leftMs <= 0) return [];
      if (dueMs === 0) continue;
      const due = (): number | undefined => read(() => reader.dueAtMs(group, clock.now()));
      await waits.member({ name: group, filters }, { ms: leftMs, signal, due });
    }
  }

  async function* batches(
    pattern: string,
    how: {
      readonly after: number;
      readonly upTo: number | undefined;
      readonly batchMax: number;
      readonly signal: AbortSignal;
      readonly reached?: (seq: number) => void;
    },
  ): AsyncGenerator<readonly StoredEntry[]> {
    const { upTo, batchMax: limit, signal, reached } = how;
    const scan = read(() => reader.scanner(pattern));
    let { after } = how;
    for (;;) {
      if (signal.aborted) throw aborted(signal);
      // Whoever asks for the next ones is done with those before.
      reached?.(after);
      const known = upTo === undefined ? tail.read(pattern, { after, limit }) : undefined;
      if (known !== undefined) {
        after = known.considered;
        if (known.entries.length > 0) yield known.entries;
        if (after < tail.last) continue;
      } else {
        const head = upTo ?? read(() => reader.head());
        const batch = head <= after ? [] : read(() => scan({ after, upTo: head, limit }));
        after = batch.length < limit ? Math.max(after, head) : Number(batch.at(-1)?.position);
        if (batch.length > 0) yield batch;
        if (after < head) continue;
        if (upTo !== undefined) return;
      }
      reached?.(after);
      const isWritten = (): boolean => read(() => reader.head()) > after;
      await waits.reader(signal, () => tail.last > after, isWritten);
    }
  }

  /** As `batches`, of a reader that is told of this process's messages before they are stored. */
  async function* earlyBatches(
    pattern: string,
    how: Omit<Parameters<typeof batches>[1], 'reached'>,
    onEarly: (entries: readonly EngineEntry[]) => void,
  ): AsyncGenerator<readonly StoredEntry[]> {
    const seat = early.join(pattern, onEarly, headNow());
    try {
      yield* batches(pattern, { ...how, reached: seat.reached });
    } finally {
      seat.leave();
    }
  }

  /** Also what was told here and is not seen by a reader of the file yet. */
  function headNow(): number {
    return Math.max(
      tail.last,
      read(() => reader.head()),
    );
  }

  return {
    capabilities: {
      durable: true,
      crossProcess: true,
      atomicBatch: true,
      fencedAcks: true,
      patternPositions: true,
      uncountedRelease: true,
      pendingList: true,
      streamBytes: true,
      readersFirst: true,
    },
    append,
    async claim(filter) {
      const held = (claims ??= { lock: holdClaim(path), token: randomUUID(), count: 0 });
      held.count += 1;
      const release = (): void => {
        held.count -= 1;
        if (held.count > 0) return;
        held.lock[Symbol.dispose]();
        if (claims === held) claims = undefined;
      };
      try {
        await write({ op: 'claim', filter, token: held.token });
      } catch (error) {
        release();
        throw error;
      }
      // What others wrote until now may not have been read; from now on they do not.
      early.behind(headNow());
      let isOver = false;
      return {
        async [Symbol.asyncDispose]() {
          if (isOver) return;
          isOver = true;
          try {
            // Answered behind everything that was appended under it: nobody comes in between.
            if (!isClosed) await write({ op: 'unclaim', filter });
          } finally {
            release();
          }
        },
      };
    },
    async ensureGroup(settings) {
      const group = { ...settings, start: toStart(settings.start) };
      const there = await write({ op: 'ensureGroup', group });
      if (there === undefined) return;
      const [was = '', wanted = ''] = [there[0], settings.filters[0]];
      throw groupConflict(settings.name, { there: was, wanted });
    },
    fetch,
    settle({ name }, settlements) {
      const request = {
        op: 'settle',
        group: name,
        settlements,
        dedupeWindowMs: busLimits.dedupeWindowMsDefault,
        nowMs: clock.now(),
      } as const;
      // A dead letter is a message, of another stream.
      const isOwn = settlements.every(({ kind }) => kind !== 'dead');
      return write(request, () => (isOwn ? waits.changed(name) : waits.all()));
    },
    async read(pattern, { from, isLive, signal, batchMax, onEarly }) {
      const start = toStart(from);
      const head = read(() => reader.head());
      const after = read(() => {
        if (start.kind === 'after') return start.seq;
        return start.kind === 'now' ? head : reader.before(start.ms);
      });
      const how = { after, upTo: isLive ? undefined : head, batchMax, signal };
      return onEarly === undefined || !isLive
        ? batches(pattern, how)
        : earlyBatches(pattern, how, onEarly);
    },
    remove: (subject, sequences) =>
      writeLess({ op: 'remove', subject, seqs: sequences.map(seqOf) }),
    streams: async (pattern, page) => read(() => reader.streams(pattern, page)),
    trim: (subject, { storedBefore, beforeSequence, ...rest }) =>
      writeLess({
        op: 'trim',
        subject,
        order: {
          ...rest,
          storedBeforeMs: storedBefore?.getTime(),
          beforeSeq: beforeSequence === undefined ? undefined : seqOf(beforeSequence),
        },
      }),
    deleteStream: (subject) => writeLess({ op: 'deleteStream', subject }),
    groups: async () => read(() => reader.groups()),
    async pending(group, limit) {
      const found = read(() => reader.pending(group, limit));
      if (found === undefined) throw unknownGroup(group);
      return found;
    },
    async seek(group, to) {
      const isThere = await write({ op: 'seek', group, to: toStart(to) });
      if (!isThere) throw unknownGroup(group);
    },
    deleteGroup: (group) => write({ op: 'deleteGroup', group }),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      others.close();
      // The last connection to close empties the log into the file, and only the writer's may.
      reader.close();
      await closing();
      claims?.lock[Symbol.dispose]();
      claims = undefined;
      waits.all();
    },
  };
}

function toStart(start: StartFrom): BusStart {
  if (start === 'start') return { kind: 'after', seq: 0 };
  if (start === 'now') return { kind: 'now' };
  if ('time' in start) return { kind: 'time', ms: start.time.getTime() };
  return 'sequence' in start
    ? { kind: 'after', seq: seqOf(start.sequence) - 1 }
    : { kind: 'after', seq: seqOf(start.position) };
}

/** A sequence of another engine is beyond every message of this one, or before them all. */
function seqOf(sequence: string): number {
  return Number(sequence.split('-')[0]);
}

function toLeased(row: SqlRow): LeasedEntry {
  return {
    ...toStored(row, String(row['subject'])),
    token: `${Number(row['seq'])}.${Number(row['token'])}`,
    deliveryCount: Number(row['delivery_count']),
  };
}

function busError(error: unknown): unknown {
  if (hasCode(error, 'STORE_CLOSED')) {
    return new MillraceError('BUS_CLOSED', 'the bus was closed', { cause: error });
  }
  if (!hasCode(error, 'STORE_UNAVAILABLE')) return error;
  const { message, details, retryable } = error;
  const { reason } = details;
  if (typeof reason === 'string' && isClaimedText(reason)) {
    return new MillraceError('BUS_CLAIMED', reason, { details, cause: error });
  }
  return new MillraceError('BUS_UNAVAILABLE', message, { details, retryable, cause: error });
}

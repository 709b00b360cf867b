// The bus in an SQLite file: no server, several processes. Writes go through the writer thread, which commits all
// waiting requests together.

import type { StartFrom, Trimmed } from '../../../bus/bus.ts';
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
import { groupConflict, unknownGroup } from '../../../bus/group-errors.ts';
import { aborted, systemClock, type Clock } from '../../../foundation/clock.ts';
import { createSqliteClient, type ClientFile } from '../connection/client.ts';
import { encodeToken } from '../connection/lease-token.ts';
import type { ResultOf, SqlRow, WriterCall } from '../thread/protocol.ts';
import { createBusReader, toStored } from './reader.ts';
import { createBusWaits } from './waits.ts';
import type { BusTrim, TrimStep } from './trim.ts';
import type { BusStart } from './writer.ts';

export function sqliteBusEngine(
  file: ClientFile,
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): BusEngine {
  const reader = createBusReader(file.connect());
  const client = createSqliteClient(file, {
    prefix: 'BUS',
    reader,
    onCommit: () => waits.onOtherCommit(),
  });
  const waits = createBusWaits(clock, (isWaiting) => client.setWaiting(isWaiting));
  const read: typeof client.read = (work) => client.read(work);

  async function write<Call extends WriterCall>(
    call: Call,
    wake: () => void = () => waits.wakeAll(),
  ): Promise<ResultOf<Call['operation']>> {
    const result = await client.call(call);
    wake();
    return result;
  }

  async function trim(subject: string, order: BusTrim): Promise<Trimmed> {
    let removed = 0;
    for (let rest = order; ;) {
      const step: TrimStep = await write({ operation: 'bus.trim', subject, order: rest });
      removed += step.removed;
      if (step.rest === undefined) return { removed, heldBack: step.heldBack };
      rest = step.rest;
    }
  }

  async function append(
    entries: readonly EngineEntry[],
    { dedupeWindowMs }: Parameters<BusEngine['append']>[1],
  ): Promise<readonly Appended[]> {
    const nowMs = clock.now();
    return write({ operation: 'bus.append', entries, dedupeWindowMs, nowMs }, () =>
      waits.onAppended(entries.map(({ subject }) => subject)),
    );
  }

  async function fetch(
    { name: group, filters }: GroupSettings,
    { limit, waitMs, signal }: FetchRequest,
  ): Promise<readonly LeasedEntry[]> {
    const deadlineMs = clock.now() + waitMs;
    for (;;) {
      if (signal.aborted) throw aborted(signal);
      const nowMs = clock.now();
      // Query first: a waiting member must not take the write lock without a message to fetch.
      const dueMs = read(() => reader.dueAtMs(group, nowMs));
      if (dueMs === 0) {
        const { isUnknown, rows } = await write(
          { operation: 'bus.fetch', group, limit, nowMs },
          () => waits.onGroupChange(group),
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
    },
  ): AsyncGenerator<readonly StoredEntry[]> {
    const { upTo, batchMax: limit, signal } = how;
    const scan = read(() => reader.scanner(pattern));
    let { after } = how;
    for (;;) {
      if (signal.aborted) throw aborted(signal);
      const head = upTo ?? read(() => reader.head());
      if (head > after) {
        const { entries, isEnd } = read(() => scan({ after, upTo: head, limit }));
        after = isEnd ? head : Number(entries.at(-1)?.position);
        if (entries.length > 0) yield entries;
      } else {
        if (upTo !== undefined) return;
        await waits.reader(signal, () => read(() => reader.head()) > after);
      }
    }
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
    },
    append,
    async ensureGroup(settings) {
      const group = { ...settings, from: toStart(settings.from) };
      const conflicting = await write({ operation: 'bus.ensureGroup', group });
      if (conflicting === undefined) return;
      const [there = '', wanted = ''] = [conflicting[0], settings.filters[0]];
      throw groupConflict(settings.name, { there, wanted });
    },
    fetch,
    settle({ name }, settlements) {
      const call = {
        operation: 'bus.settle',
        group: name,
        settlements,
        dedupeWindowMs: busLimits.dedupeWindowMsDefault,
        nowMs: clock.now(),
      } as const;
      // A dead letter is a message of another stream, which other groups may read.
      const hasDeadLetter = settlements.some(({ kind }) => kind === 'dead');
      return write(call, () => (hasDeadLetter ? waits.wakeAll() : waits.onGroupChange(name)));
    },
    async read(pattern, { from, isLive, signal, batchMax }) {
      const start = toStart(from);
      const head = read(() => reader.head());
      const after = read(() => {
        if (start.kind === 'after') return start.seq;
        return start.kind === 'end' ? head : reader.before(start.ms);
      });
      return batches(pattern, { after, upTo: isLive ? undefined : head, batchMax, signal });
    },
    remove: (subject, sequences) =>
      write({ operation: 'bus.remove', subject, seqs: sequences.map(seqOf) }),
    streams: async (pattern, page) => read(() => reader.streams(pattern, page)),
    trim: (subject, { storedBefore, beforeSequence, ...rest }) =>
      trim(subject, {
        ...rest,
        storedBeforeMs: storedBefore?.getTime(),
        beforeSeq: beforeSequence === undefined ? undefined : seqOf(beforeSequence),
      }),
    deleteStream: (subject) => write({ operation: 'bus.deleteStream', subject }),
    groups: async () => read(() => reader.groups()),
    async pending(group, limit) {
      const found = read(() => reader.pending(group, limit));
      if (found === undefined) throw unknownGroup(group);
      return found;
    },
    async seek(group, to) {
      const exists = await write({ operation: 'bus.seek', group, to: toStart(to) });
      if (!exists) throw unknownGroup(group);
    },
    deleteGroup: (group) => write({ operation: 'bus.deleteGroup', group }),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      waits.wakeAll();
    },
  };
}

function toStart(start: StartFrom): BusStart {
  if (start === 'start') return { kind: 'after', seq: 0 };
  if (start === 'end') return { kind: 'end' };
  if ('time' in start) return { kind: 'time', ms: start.time.getTime() };
  return 'sequence' in start
    ? { kind: 'after', seq: seqOf(start.sequence) - 1 }
    : { kind: 'after', seq: seqOf(start.position) };
}

/** A sequence of another engine is before or after every message of this engine. */
function seqOf(sequence: string): number {
  return Number(sequence.split('-')[0]);
}

function toLeased(row: SqlRow): LeasedEntry {
  return {
    ...toStored(row, String(row['subject'])),
    token: encodeToken(row),
    deliveryCount: Number(row['delivery_count']),
  };
}

// Signals of tasks. A signal is a message of the bus, with the same envelope in the same streams, so that consumers of
// the bus can read it. Its content comes from a validated job and is not validated again.
//
// On a cluster, a signal may belong to a stream in another slot than its job. The signal is then stored after the job,
// and its stream id is stored in the job last. After a crash in between, `repair` stores the missing signals.

import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
import { isoOf, type TaskSignal } from '../../../tasks/task-signal.ts';
import { appendedOf } from '../bus/append.ts';
import { forEachGroup } from '../connection/engine.ts';
import { taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf, type TypeKeys } from './keyspace.ts';

export function signalText(signal: TaskSignal, nowMs: number): string {
  const { id, subject, tenant, correlationId, causationId, trace, payload } = signal;
  return JSON.stringify({
    version: 1,
    id,
    subject,
    time: isoOf(nowMs),
    tenant,
    correlationId,
    causationId,
    traceparent: trace?.traceparent,
    tracestate: trace?.tracestate,
    payload,
  });
}

function signalEntry(signal: TaskSignal, nowMs: number): EngineEntry {
  const { subject, id } = signal;
  return { subject, id, data: Buffer.from(signalText(signal, nowMs)) };
}

/** Numbers of the streams in scripts. */
export const streamNumbers = { queue: 1, terminal: 2, progress: 3 } as const;
type StreamNumber = (typeof streamNumbers)[keyof typeof streamNumbers];

/** Undefined if the subject is not a stream of this type. */
export function streamNumber(typeKeys: TypeKeys, subject: string): StreamNumber | undefined {
  if (subject === typeKeys.queue.subject) return streamNumbers.queue;
  if (subject === typeKeys.terminal.subject) return streamNumbers.terminal;
  return subject === typeKeys.progress.subject ? streamNumbers.progress : undefined;
}

/** Identifies a signal among the signals of one job in one stream: the fence, or a part of the signal id. */
export function signalKey(number: StreamNumber, id: string): string {
  return number === streamNumbers.progress ? id.slice(2) : id.slice(id.lastIndexOf(':') + 1);
}

/** How long a stream remembers ids: longer than a process may take to store the stream id of a signal in its job. */
const rememberMs = 3_600_000;

export type PublishToOtherSlots = (
  typeKeys: TypeKeys,
  signals: readonly TaskSignal[],
  nowMs: number,
) => Promise<void>;

interface JobSignal {
  readonly signal: TaskSignal;
  readonly number: StreamNumber;
  readonly suffix: string;
}

interface StoredSignal extends JobSignal {
  /** Id in the stream. */
  readonly streamId: string;
}

export interface TaskSignals extends AsyncDisposable {
  readonly publishToOtherSlots: PublishToOtherSlots;
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}

export function createTaskSignals(context: RedisTaskContext): TaskSignals {
  const { redis, keyspace, append } = context;
  const { bus } = keyspace;
  const { isOneDomain } = bus;
  const writing = new Set<Promise<void>>();

  async function writeStreamIds({ base, never }: TypeKeys, stored: readonly StoredSignal[]) {
    const values = stored.flatMap(({ suffix, number, signal, streamId }) => [
      suffix,
      number,
      signalKey(number, signal.id),
      streamId,
    ]);
    await redis.run(taskScripts.writeSignalIds, [base, never], values);
  }

  /** Does not delay the caller: the stream itself remembers the ids for an hour. */
  function writeStreamIdsLater(typeKeys: TypeKeys, stored: readonly StoredSignal[]): void {
    const work = writeStreamIds(typeKeys, stored).catch(() => undefined);
    writing.add(work);
    void work.finally(() => writing.delete(work));
  }

  /** Returns the stream id of each signal: '' if unknown, null if the job was removed or has a later signal. */
  async function readStreamIds({ base, never }: TypeKeys, signals: readonly JobSignal[]) {
    const values = signals.flatMap(({ suffix, number, signal }) => [
      suffix,
      number,
      signalKey(number, signal.id),
    ]);
    const found = await redis.run(taskScripts.readSignalIds, [base, never], values);
    return found as readonly (string | null)[];
  }

  /** Stores the signals that are missing in their streams, even if a stream id is known. */
  async function restore(
    signals: readonly { readonly signal: TaskSignal; readonly known: string }[],
    nowMs: number,
  ): Promise<readonly Appended[]> {
    if (signals.length === 0) return [];
    await context.registry.register([...new Set(signals.map(({ signal }) => signal.subject))]);
    return forEachGroup(
      signals,
      ({ signal }) => signal.subject,
      async (own, subject) => {
        const key = bus.streamKey(subject);
        const values = own.flatMap(({ signal, known }) => [
          signal.id,
          known,
          signalText(signal, nowMs),
        ]);
        const header = [rememberMs, bus.channel, isOneDomain ? bus.registry : '', subject];
        const keys = [key, bus.mark(key)];
        return appendedOf(
          await redis.run(taskScripts.restoreSignals, keys, [...header, ...values]),
        );
      },
    );
  }

  function jobSignal(typeKeys: TypeKeys, signal: TaskSignal): JobSignal | undefined {
    const number = streamNumber(typeKeys, signal.subject);
    const { taskId } = signal.payload;
    if (number === undefined || typeof taskId !== 'string') return undefined;
    return { signal, number, suffix: suffixOf(taskId) };
  }

  async function repairType(
    type: string,
    signals: readonly TaskSignal[],
    nowMs: number,
  ): Promise<number> {
    const typeKeys = type === '' ? undefined : keyspace.typeKeys(type);
    const ofJobs =
      typeKeys === undefined ? [] : signals.flatMap((signal) => jobSignal(typeKeys, signal) ?? []);
    const streamIds = typeKeys === undefined ? [] : await readStreamIds(typeKeys, ofJobs);
    const current = ofJobs.flatMap((each, at) => {
      const known = streamIds[at] ?? undefined;
      return known === undefined ? [] : [{ ...each, known }];
    });
    const isOfJob = new Set(ofJobs.map(({ signal }) => signal));
    const others = signals.filter((signal) => !isOfJob.has(signal));
    const restored = await restore(
      [...current, ...others.map((signal) => ({ signal, known: '' }))],
      nowMs,
    );
    const changed = current.flatMap((each, at) => {
      const { sequence: streamId = '' } = restored[at] ?? {};
      return each.known === streamId ? [] : [{ ...each, streamId }];
    });
    if (typeKeys !== undefined && changed.length > 0) await writeStreamIds(typeKeys, changed);
    return restored.filter(({ isDuplicate }) => !isDuplicate).length;
  }

  return {
    async publishToOtherSlots(typeKeys, signals, nowMs) {
      const others = signals
        .flatMap((signal) => jobSignal(typeKeys, signal) ?? [])
        .filter(({ number }) => number !== streamNumbers.queue);
      if (others.length === 0) return;
      const entries = others.map(({ signal }) => signalEntry(signal, nowMs));
      const stored = await append(entries, rememberMs);
      writeStreamIdsLater(
        typeKeys,
        others.map((each, at) => ({ ...each, streamId: stored[at]?.sequence ?? '' })),
      );
    },
    async repair(signals, nowMs) {
      const byType = Map.groupBy(signals, ({ payload: { type } }) =>
        typeof type === 'string' ? type : '',
      );
      const counts = await Promise.all(
        [...byType].map(([type, all]) => repairType(type, all, nowMs)),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(writing);
    },
  };
}

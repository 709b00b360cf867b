// Publishes signals of jobs to the streams of the bus. The server dedupes ids of the last minutes; for older ids, `repair`
// reads a subject once and then only its new messages.

import type { EngineEntry } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { createMessageCodec } from '../../../bus/message-codec.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import { messageIdOf } from '../bus/append.ts';
import type { BusLog } from '../bus/bus.ts';

export interface TaskSignals {
  publish(signals: readonly TaskSignal[], nowMs: number): Promise<void>;
  /** Publishes missing signals, however old they are. Returns how many. */
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}

/** The message ids of a subject that this process has read. */
interface KnownIds {
  readonly ids: Set<string>;
  /** The creation time of the stream; it changes if the stream is deleted and created again. */
  readonly created: string | undefined;
  lastSequence: number;
  lastId: string;
  count: number;
}

const window = { dedupeWindowMs: busLimits.dedupeWindowMsDefault };
/** The number of times that a lost signal is published again within minutes. */
const retriesMax = 5;

export function createTaskSignals({ parts, streams, append, reader }: BusLog): TaskSignals {
  const { wire, layout } = parts;
  const known = new Map<string, KnownIds>();
  let now = 0;
  const codec = createMessageCodec({ clock: { now: () => now, sleep: () => Promise.resolve() } });

  function entriesOf(signals: readonly TaskSignal[], nowMs: number): readonly EngineEntry[] {
    now = nowMs;
    return signals.map((signal) => codec.encode(signal));
  }

  /**
   * Reads the messages after the known ones. Returns false if the last known message is gone: a server that crashed may
   * have lost it and reused its sequence.
   */
  async function readOn(subject: string, read: KnownIds): Promise<boolean> {
    let isIntact = read.lastSequence === 0;
    for await (const message of reader.headers(subject, Math.max(1, read.lastSequence))) {
      const { messageId, sequence } = message;
      if (!isIntact) {
        isIntact = sequence === read.lastSequence && messageId === read.lastId;
        if (!isIntact) return false;
        continue;
      }
      read.ids.add(plainId(messageId));
      read.lastSequence = sequence;
      read.lastId = messageId;
      read.count += 1;
    }
    return isIntact;
  }

  /** Reads only new messages. Reads all messages again if some of the known ones are missing. */
  async function publishedIds(subject: string): Promise<ReadonlySet<string>> {
    const stream = layout.streamOf(subject);
    const name = layout.toNats(subject);
    // Another program may have deleted the stream.
    streams.forget();
    await streams.ensure(subject);
    let read = known.get(subject);
    if (read !== undefined && (await readOn(subject, read))) {
      const info = await streams.info(stream, { subjects_filter: name });
      const isComplete = (info?.state.subjects?.[name] ?? 0) >= read.count;
      if (isComplete && info?.created === read.created) return read.ids;
    }
    const created = (await streams.info(stream))?.created;
    read = { ids: new Set(), created, lastSequence: 0, lastId: '', count: 0 };
    await readOn(subject, read);
    known.set(subject, read);
    return read.ids;
  }

  /** Publishes under another id if the server reports a duplicate of a message that was deleted. */
  async function republish(entries: readonly EngineEntry[]): Promise<number> {
    let left = entries;
    let published = 0;
    for (let round = 0; round < retriesMax && left.length > 0; round += 1) {
      const appended = await append(left, window);
      const duplicates = left.flatMap((entry, at) => {
        const { isDuplicate = false, sequence = '0' } = appended[at] ?? {};
        return isDuplicate ? [{ entry, sequence }] : [];
      });
      published += left.length - duplicates.length;
      const found = await wire.getMessages(
        duplicates.map(({ entry: { subject }, sequence }) => ({
          stream: layout.streamOf(subject),
          query: { seq: Number(sequence) },
        })),
      );
      left = duplicates.flatMap(({ entry, sequence }, at) =>
        found[at]?.subject === layout.toNats(entry.subject)
          ? []
          : [{ ...entry, id: `${entry.id.split(retryMark)[0] ?? ''}${retryMark}${sequence}` }],
      );
    }
    return published;
  }

  return {
    async publish(signals, nowMs) {
      if (signals.length > 0) await append(entriesOf(signals, nowMs), window);
    },
    async repair(signals, nowMs) {
      const missing: EngineEntry[] = [];
      const entries = entriesOf(signals, nowMs);
      for (const [subject, own] of Map.groupBy(entries, (entry) => entry.subject)) {
        const published = await publishedIds(subject);
        missing.push(...own.filter((entry) => !published.has(messageIdOf(entry))));
      }
      return republish(missing);
    },
  };
}

/** Marks the message id of a retry; the id of a signal never contains this string. */
const retryMark = '~again~';

/** Returns the message id without the mark of a retry. */
export function plainId(messageId: string): string {
  const at = messageId.indexOf(retryMark);
  return at < 0 ? messageId : messageId.slice(0, at);
}

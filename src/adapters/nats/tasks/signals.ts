// Signals of jobs, in the streams of the bus. The server knows the ids of the last minutes; of older
// ones a process that repairs reads them once, and from then on what is new.

import type { EngineEntry } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { createMessageCodec } from '../../../bus/message-codec.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import { messageIdOf, type Append } from '../bus/append.ts';
import type { BusReader } from '../bus/read.ts';
import type { BusParts, BusStreams } from '../bus/streams.ts';

export interface TaskSignals {
  tell(signals: readonly TaskSignal[], nowMs: number): Promise<void>;
  /** Those that are not there, however long ago they were told. Returns how many. */
  repair(signals: readonly TaskSignal[], nowMs: number): Promise<number>;
}

/** The ids that a subject's stream holds, as far as they were read. */
interface Told {
  readonly ids: Set<string>;
  /** When its stream was made: another time is another stream. */
  readonly created: string | undefined;
  lastSequence: number;
  count: number;
}

interface Got {
  readonly message?: { readonly subject: string };
}

const window = { dedupeWindowMs: busLimits.dedupeWindowMsDefault };
/** Lost, told again, and lost again within minutes: enough. */
const againMax = 5;

export function createTaskSignals(
  { wire, layout }: BusParts,
  {
    streams,
    append,
    reader,
  }: { readonly streams: BusStreams; readonly append: Append; readonly reader: BusReader },
): TaskSignals {
  const known = new Map<string, Told>();
  let now = 0;
  const codec = createMessageCodec({ clock: { now: () => now, sleep: () => Promise.resolve() } });

  function entriesOf(signals: readonly TaskSignal[], nowMs: number): readonly EngineEntry[] {
    now = nowMs;
    return signals.map((signal) => codec.encode(signal));
  }

  async function readFrom(subject: string, told: Told): Promise<void> {
    for await (const message of reader.headers(subject, told.lastSequence + 1)) {
      told.ids.add(plainId(message.messageId));
      told.lastSequence = message.sequence;
      told.count += 1;
    }
  }

  /** What it held is taken as told, unless some of it is gone: then all is read again. */
  async function toldOf(subject: string): Promise<ReadonlySet<string>> {
    const stream = layout.streamOf(subject);
    const name = layout.toNats(subject);
    // Whoever took the stream away told nobody.
    streams.forget();
    await streams.ensure(subject);
    let told = known.get(subject);
    if (told !== undefined) {
      await readFrom(subject, told);
      const info = await streams.info(stream, { subjects_filter: name });
      const isWhole = (info?.state.subjects?.[name] ?? 0) >= told.count;
      if (isWhole && info?.created === told.created) return told.ids;
    }
    const created = (await streams.info(stream))?.created;
    told = { ids: new Set(), created, lastSequence: 0, count: 0 };
    await readFrom(subject, told);
    known.set(subject, told);
    return told.ids;
  }

  /** The server may take it for one that it knows, though that one is gone: then under another name. */
  async function tellSurely(entries: readonly EngineEntry[]): Promise<number> {
    let left = entries;
    let told = 0;
    for (let round = 0; round < againMax && left.length > 0; round += 1) {
      const appended = await append(left, window);
      const twice = left.flatMap((entry, at) => {
        const { isDuplicate = false, sequence = '0' } = appended[at] ?? {};
        return isDuplicate ? [{ entry, sequence }] : [];
      });
      told += left.length - twice.length;
      const found = await wire.askAll<Got>(
        twice.map(({ entry: { subject }, sequence }) => ({
          verb: `STREAM.MSG.GET.${layout.streamOf(subject)}`,
          body: { seq: Number(sequence) },
        })),
      );
      left = twice.flatMap(({ entry, sequence }, at) =>
        found[at]?.message?.subject === layout.toNats(entry.subject)
          ? []
          : [{ ...entry, id: `${entry.id.split(again)[0] ?? ''}${again}${sequence}` }],
      );
    }
    return told;
  }

  return {
    async tell(signals, nowMs) {
      if (signals.length > 0) await append(entriesOf(signals, nowMs), window);
    },
    async repair(signals, nowMs) {
      const missing: EngineEntry[] = [];
      const entries = entriesOf(signals, nowMs);
      for (const [subject, own] of Map.groupBy(entries, (entry) => entry.subject)) {
        const told = await toldOf(subject);
        missing.push(...own.filter((entry) => !told.has(messageIdOf(entry))));
      }
      return tellSurely(missing);
    },
  };
}

/** No id of a signal holds it. */
const again = '~again~';

/** As the signal was first called. */
export function plainId(messageId: string): string {
  const at = messageId.indexOf(again);
  return at < 0 ? messageId : messageId.slice(0, at);
}

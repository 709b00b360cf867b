// Live messages of topics to all who read them here: one reader of the bus for the whole process, and
// what came together goes out together.

import { subjects } from '../contracts/subjects.ts';
import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { MessageFilter } from './message-filter.ts';
import { comparePlaces, type TopicBus } from './topic-bus.ts';
import { placed, topicOfSubject, type PlacedMessage } from './topic-log.ts';

/** Messages that go to a reader at once. */
export interface TopicBatch {
  readonly messages: readonly PlacedMessage[];
  /** Made once for all who get this very batch. */
  once<T>(form: string, make: (messages: readonly PlacedMessage[]) => T): T;
}

export interface TopicReader {
  readonly topics: readonly string[];
  readonly filter: MessageFilter;
  /** Asked again when that may have changed. Absent: always. */
  mayRead?(): boolean;
  /** Never waits. */
  deliver(batch: TopicBatch): void;
  /** Messages may have been missed: it has to come again and say what it has. */
  cut(): void;
}

/** A reader's place in the hub: what comes is held back until it has what was there before. */
interface TopicSeat {
  /** From then on nothing is missed. */
  readonly ready: Promise<void>;
  /** What was held back follows, but for what the reader has: of each topic, what is not behind this place. */
  live(last: ReadonlyMap<string, string>): void;
  leave(): void;
}

export interface TopicHub extends AsyncDisposable {
  join(reader: TopicReader): TopicSeat;
  /** Ends those that are meant. Default: all of them. */
  cut(isMeant?: (reader: TopicReader) => boolean): void;
  readonly readers: number;
}

interface Entry {
  readonly reader: TopicReader;
  /** While it is behind. */
  held: PlacedMessage[] | undefined;
}

const heldMax = 10_000;
/** Between the last reader's end and the end of reading: many come again at once. */
const lingerMs = 30_000;

export function createTopicHub(
  bus: TopicBus,
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
): TopicHub {
  const byTopic = new Map<string, Set<Entry>>();
  const closing = new AbortController();
  let readers = 0;
  let reading:
    | { readonly ready: Promise<void>; readonly done: Promise<void>; readonly end: AbortController }
    | undefined;
  let waiting: PlacedMessage[] = [];
  let isFlushing = false;
  let linger: AbortController | undefined;

  function open(): Promise<void> {
    if (reading !== undefined) return reading.ready;
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, closing.signal]);
    const opened = bus.subscribe(subjects.notify.everyTopic, { from: 'now', signal });
    const done = follow(opened, signal);
    const ready = opened.then(() => undefined);
    reading = { ready, done, end };
    return ready;
  }

  async function follow(
    opened: ReturnType<TopicBus['subscribe']>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await using messages = await opened;
      for await (const each of messages) {
        if (byTopic.has(topicOfSubject(each.subject))) take(placed(each));
      }
    } catch (error) {
      if (!hasCode(error, 'ABORTED'))
        observer.log?.error({ err: error }, 'topics cannot be followed');
    }
    if (signal.aborted) return;
    // What came meanwhile is in the bus: whoever comes again gets it from there.
    reading = undefined;
    for (const entry of allEntries()) entry.reader.cut();
  }

  function take(message: PlacedMessage): void {
    waiting.push(message);
    if (isFlushing) return;
    isFlushing = true;
    // Behind everything that the bus has given at once, and not behind the answers to whoever published it.
    process.nextTick(flush);
  }

  function flush(): void {
    isFlushing = false;
    const messages = waiting;
    waiting = [];
    const ofTopic = Map.groupBy(messages, ({ message }) => message.topic);
    const ofEntry = new Map<Entry, PlacedMessage[]>();
    for (const [topic, own] of ofTopic) {
      const batch = batchOf(own);
      for (const entry of byTopic.get(topic) ?? []) {
        const { reader, held } = entry;
        const isPlain =
          held === undefined && reader.filter === undefined && reader.topics.length === 1;
        if (isPlain) reader.deliver(batch);
        else ofEntry.set(entry, []);
      }
    }
    if (ofEntry.size > 0) deliverEach(messages, ofEntry);
    observer.count?.('notify_delivered_total', {}, messages.length);
  }

  /** To those that want some of them only, or of several topics, in the order of the bus. */
  function deliverEach(
    messages: readonly PlacedMessage[],
    ofEntry: Map<Entry, PlacedMessage[]>,
  ): void {
    for (const each of messages) {
      for (const entry of byTopic.get(each.message.topic) ?? []) {
        const { filter } = entry.reader;
        if (filter !== undefined && isFiltered(each) && !filter(each.message)) continue;
        ofEntry.get(entry)?.push(each);
      }
    }
    for (const [entry, own] of ofEntry) {
      if (own.length === 0) continue;
      if (entry.held === undefined) entry.reader.deliver(batchOf(own));
      else if (entry.held.length + own.length > heldMax) entry.reader.cut();
      else entry.held.push(...own);
    }
  }

  function* allEntries(): Generator<Entry> {
    yield* new Set([...byTopic.values()].flatMap((entries) => [...entries]));
  }

  async function endWhenIdle(): Promise<void> {
    const waitingFor = new AbortController();
    linger = waitingFor;
    try {
      await clock.sleep(lingerMs, AbortSignal.any([waitingFor.signal, closing.signal]));
    } catch (error) {
      if (hasCode(error, 'ABORTED')) return;
      throw error;
    }
    if (readers > 0 || reading === undefined) return;
    const { end } = reading;
    reading = undefined;
    end.abort();
  }

  return {
    join(reader) {
      if (closing.signal.aborted) throw new MillraceError('BUS_CLOSED', 'the server stops');
      const entry: Entry = { reader, held: [] };
      const topics = new Set(reader.topics);
      for (const topic of topics) {
        const entries = byTopic.get(topic);
        if (entries === undefined) byTopic.set(topic, new Set([entry]));
        else entries.add(entry);
      }
      readers += 1;
      linger?.abort();
      let isGone = false;
      return {
        ready: open(),
        live(last) {
          const held = entry.held ?? [];
          entry.held = undefined;
          const missing = held.filter(({ message, place }) => {
            const known = last.get(message.topic);
            return known === undefined || comparePlaces(place, known) > 0;
          });
          if (missing.length > 0) reader.deliver(batchOf(missing));
        },
        leave() {
          if (isGone) return;
          isGone = true;
          readers -= 1;
          for (const topic of topics) {
            const entries = byTopic.get(topic);
            entries?.delete(entry);
            if (entries?.size === 0) byTopic.delete(topic);
          }
          if (readers === 0) void endWhenIdle();
        },
      };
    },
    cut(isMeant = () => true) {
      for (const { reader } of allEntries()) if (isMeant(reader)) reader.cut();
    },
    get readers() {
      return readers;
    },
    async [Symbol.asyncDispose]() {
      closing.abort(aborted());
      for (const entry of allEntries()) entry.reader.cut();
      await reading?.done;
    },
  };
}

/** Requests to poll are for everybody, whatever they filter by. */
function isFiltered({ message }: PlacedMessage): boolean {
  return message.event !== 'poll_request';
}

export function batchOf(messages: readonly PlacedMessage[]): TopicBatch {
  const made = new Map<string, unknown>();
  return {
    messages,
    once<T>(form: string, make: (all: readonly PlacedMessage[]) => T): T {
      if (!made.has(form)) made.set(form, make(messages));
      return made.get(form) as T;
    },
  };
}

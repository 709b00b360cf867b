// Live messages of topics to all who read them here: one reader of the bus for the whole process, and
// what came together goes out together.

import { subjects } from '../contracts/subjects.ts';
import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { MessageFilter } from './message-filter.ts';
import { comparePlaces, type EarlyTopicMessage, type TopicBus } from './topic-bus.ts';
import { createEarlyMessages } from './early-messages.ts';
import { placed, topicOfSubject, type PlacedMessage } from './topic-log.ts';
import type { TopicMessage } from './topic-message.ts';

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
  /**
   * What was held back follows, but for what the reader has: of each topic, what is not behind this place, and
   * of what has no place yet, these ids.
   */
  live(last: ReadonlyMap<string, string>, ids: ReadonlySet<string>): void;
  leave(): void;
}

export interface TopicHub extends AsyncDisposable {
  join(reader: TopicReader): TopicSeat;
  /** Readers may have it, and it will not be stored. */
  failed(message: TopicMessage): void;
  /** Resolves once everything of these topics that readers have by now is stored, or will not be. */
  settled(topics: readonly string[]): Promise<void>;
  /** Ends those that are meant. Default: all of them. */
  cut(isMeant?: (reader: TopicReader) => boolean): void;
  readonly readers: number;
}

interface Entry {
  readonly reader: TopicReader;
  /** While it is behind. */
  held: PlacedMessage[] | undefined;
  /**
   * Of each topic, the last that it has from the log, which may be ahead of what comes here; until that is
   * ahead of them all.
   */
  has: ReadonlyMap<string, string> | undefined;
}

const heldMax = 10_000;
/** Of a topic: writing to them takes less than what else a message needs. */
const fewReaders = 16;
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
  const early = createEarlyMessages();
  let waiting: PlacedMessage[] = [];
  let flushing: NodeJS.Immediate | undefined;
  let linger: AbortController | undefined;

  function open(): Promise<void> {
    if (reading !== undefined) return reading.ready;
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, closing.signal]);
    const opened = bus.subscribe(subjects.notify.everyTopic, {
      from: 'now',
      signal,
      onEarly: takeEarly,
    });
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
      for await (const batch of messages.batches()) {
        const news = batch.filter((each) => !early.stored(each));
        take(news.filter(({ subject }) => byTopic.has(topicOfSubject(subject))).map(placed));
      }
    } catch (error) {
      if (!hasCode(error, 'ABORTED'))
        observer.log?.error({ err: error }, 'topics cannot be followed');
    }
    early.forget();
    if (signal.aborted) return;
    // What came meanwhile is in the bus: whoever comes again gets it from there.
    reading = undefined;
    for (const entry of allEntries()) entry.reader.cut();
  }

  function takeEarly(message: EarlyTopicMessage): void {
    take([early.take(message, clock.now())]);
  }

  /**
   * To few at once, before the log has even begun with it or its publisher is answered. Writing to many takes
   * longer than all of that: they get together what came in this turn and in the next, in which whoever was
   * answered asks again, so that the log has work meanwhile.
   */
  function take(messages: readonly PlacedMessage[]): void {
    if (messages.length === 0) return;
    waiting.push(...messages);
    if (flushing !== undefined) return;
    const isForFew = messages.every(
      ({ message }) => (byTopic.get(message.topic)?.size ?? 0) <= fewReaders,
    );
    if (isForFew) flush();
    else flushing = setImmediate(() => void (flushing = setImmediate(flush)));
  }

  function flush(): void {
    clearImmediate(flushing);
    flushing = undefined;
    const messages = waiting;
    if (messages.length === 0) return;
    waiting = [];
    const ofTopic = Map.groupBy(messages, ({ message }) => message.topic);
    const ofEntry = new Map<Entry, PlacedMessage[]>();
    for (const [topic, own] of ofTopic) {
      const batch = batchOf(own);
      for (const entry of byTopic.get(topic) ?? []) {
        const { reader, held, has } = entry;
        const isPlain =
          held === undefined &&
          has === undefined &&
          reader.filter === undefined &&
          reader.topics.length === 1;
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
        if (isWanted(entry.reader, each) && isNew(entry, each)) ofEntry.get(entry)?.push(each);
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
      const topics = new Set(reader.topics);
      flush();
      // Those before it have these, and the log does not: in their place, before what comes.
      const coming = early.of(topics).filter((each) => isWanted(reader, each));
      const entry: Entry = { reader, held: coming, has: undefined };
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
        live(last, ids) {
          const held = entry.held ?? [];
          entry.held = undefined;
          if (last.size > 0) entry.has = last;
          const missing = held.filter((each) => {
            if (early.isFailed(each)) return false;
            return each.place === '' ? !ids.has(each.message.id) : isNew(entry, each);
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
    failed: (message) => early.failed(message),
    settled: (topics) => early.settled(topics),
    cut(isMeant = () => true) {
      for (const { reader } of allEntries()) if (isMeant(reader)) reader.cut();
    },
    get readers() {
      return readers;
    },
    async [Symbol.asyncDispose]() {
      flush();
      closing.abort(aborted());
      for (const entry of allEntries()) entry.reader.cut();
      await reading?.done;
    },
  };
}

/** Places come in order here: one that is behind all that the reader has ends the looking. */
function isNew(entry: Entry, { message, place }: PlacedMessage): boolean {
  const { has } = entry;
  if (has === undefined || place === '') return true;
  const last = has.get(message.topic);
  if (last !== undefined && comparePlaces(place, last) <= 0) return false;
  if ([...has.values()].every((each) => comparePlaces(place, each) > 0)) entry.has = undefined;
  return true;
}

/** Requests to poll are for everybody, whatever they filter by. */
function isWanted({ filter }: TopicReader, { message }: PlacedMessage): boolean {
  return filter === undefined || message.event === 'poll_request' || filter(message);
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

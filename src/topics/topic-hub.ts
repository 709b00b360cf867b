// Delivers live messages to the readers of this process: one bus subscription serves all of them, and messages
// that arrive together are delivered together.

import { subjects } from '../contracts/subjects.ts';
import { aborted, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { MessageFilter } from './read-params.ts';
import { comparePositions, type TopicBus } from './topic-bus.ts';
import { withPosition, topicOfSubject, type PositionedMessage } from './topic-log.ts';

/** Messages that are delivered to a reader in one call. */
export interface TopicBatch {
  readonly messages: readonly PositionedMessage[];
  /** Encodes the batch once for all readers that get it. */
  once<T>(form: string, make: (messages: readonly PositionedMessage[]) => T): T;
}

export interface TopicReader {
  readonly topics: readonly string[];
  readonly filter: MessageFilter;
  /** Called again when permissions change. Absent: always allowed. */
  mayRead?(): boolean;
  /** Must not wait. */
  deliver(batch: TopicBatch): void;
  /** Ends the reader, because it may have missed messages; the client reconnects with `since`. */
  cut(): void;
}

/** A reader in the hub. New messages are queued until the reader has the stored ones. */
interface HubSubscription {
  /** Resolves once no later message can be missed. */
  readonly ready: Promise<void>;
  /** Delivers the queued messages after `last`, the reader's position in each topic, and then live ones. */
  live(last: ReadonlyMap<string, string>): void;
  leave(): void;
}

export interface TopicHub extends AsyncDisposable {
  join(reader: TopicReader): HubSubscription;
  /** Ends the readers that match. Default: all of them. */
  cut(matches?: (reader: TopicReader) => boolean): void;
  readonly readers: number;
}

interface Entry {
  readonly reader: TopicReader;
  /** Messages that wait until the reader has the stored ones; undefined once it is live. */
  queued: PositionedMessage[] | undefined;
  /**
   * The last position per topic that the reader has from the log, which may be ahead of the hub. Undefined once the
   * hub has passed all of them.
   */
  last: ReadonlyMap<string, string> | undefined;
}

const queuedMax = 10_000;
/** Up to this many readers of a topic, delivering at once is cheaper than scheduling it. */
const fewReaders = 16;
/** The bus subscription outlives its last reader for this long, because clients often reconnect. */
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
  let waiting: PositionedMessage[] = [];
  let flushing: NodeJS.Immediate | undefined;
  let linger: AbortController | undefined;

  function open(): Promise<void> {
    if (reading !== undefined) return reading.ready;
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, closing.signal]);
    const opened = bus.subscribe(subjects.notify.everyTopic, { from: 'end', signal });
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
        take(batch.filter(({ subject }) => byTopic.has(topicOfSubject(subject))).map(withPosition));
      }
    } catch (error) {
      if (!hasCode(error, 'ABORTED'))
        observer.log?.error({ err: error }, 'subscription to topics failed');
    }
    if (signal.aborted) return;
    // The bus keeps the messages that the hub missed; readers get them when they reconnect.
    reading = undefined;
    for (const entry of allEntries()) entry.reader.cut();
  }

  /**
   * Delivers to few readers at once, before the publisher gets its response. Writing to many readers takes longer than
   * a commit, so those get the messages of this and the next turn of the event loop together. Publishers send their
   * next message in between, and its commit runs while the hub writes.
   */
  function take(messages: readonly PositionedMessage[]): void {
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
    const ofEntry = new Map<Entry, PositionedMessage[]>();
    for (const [topic, own] of ofTopic) {
      const batch = batchOf(own);
      for (const entry of byTopic.get(topic) ?? []) {
        const { reader, queued, last } = entry;
        const takesAll =
          queued === undefined &&
          last === undefined &&
          reader.filter === undefined &&
          reader.topics.length === 1;
        if (takesAll) reader.deliver(batch);
        else ofEntry.set(entry, []);
      }
    }
    if (ofEntry.size > 0) deliverEach(messages, ofEntry);
    observer.count?.('notify_delivered_total', {}, messages.length);
  }

  /** Delivers to readers of several topics, or with a filter, in the order of the bus. */
  function deliverEach(
    messages: readonly PositionedMessage[],
    ofEntry: Map<Entry, PositionedMessage[]>,
  ): void {
    for (const each of messages) {
      for (const entry of byTopic.get(each.message.topic) ?? []) {
        if (isWanted(entry.reader, each) && isNew(entry, each)) ofEntry.get(entry)?.push(each);
      }
    }
    for (const [entry, own] of ofEntry) {
      if (own.length === 0) continue;
      if (entry.queued === undefined) entry.reader.deliver(batchOf(own));
      else if (entry.queued.length + own.length > queuedMax) entry.reader.cut();
      else entry.queued.push(...own);
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
      // Messages from before the reader joined are not new to it.
      flush();
      const entry: Entry = { reader, queued: [], last: undefined };
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
          const { queued = [] } = entry;
          entry.queued = undefined;
          if (last.size > 0) entry.last = last;
          const missing = queued.filter((each) => isNew(entry, each));
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
    cut(matches = () => true) {
      for (const { reader } of allEntries()) if (matches(reader)) reader.cut();
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

/** The hub gets messages in order: one that is after all of `last` ends the comparison for this reader. */
function isNew(entry: Entry, { message, position }: PositionedMessage): boolean {
  const { last } = entry;
  if (last === undefined) return true;
  const known = last.get(message.topic);
  if (known !== undefined && comparePositions(position, known) <= 0) return false;
  if ([...last.values()].every((each) => comparePositions(position, each) > 0))
    entry.last = undefined;
  return true;
}

/** Poll requests pass every filter, as in ntfy. */
function isWanted({ filter }: TopicReader, { message }: PositionedMessage): boolean {
  return filter === undefined || message.event === 'poll_request' || filter(message);
}

export function batchOf(messages: readonly PositionedMessage[]): TopicBatch {
  const encoded = new Map<string, unknown>();
  return {
    messages,
    once<T>(form: string, make: (all: readonly PositionedMessage[]) => T): T {
      if (!encoded.has(form)) encoded.set(form, make(messages));
      return encoded.get(form) as T;
    },
  };
}

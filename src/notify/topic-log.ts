// The messages of topics in the bus, which is the truth: any process finds there what any other published.

import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Since } from './since.ts';
import {
  comparePlaces,
  type TopicBus,
  type TopicBusMessage,
  type TopicDurability,
} from './topic-bus.ts';
import { timeOfMessageId, toTopicMessage, type TopicMessage } from './topic-message.ts';

/** A message and where it stands. */
export interface PlacedMessage {
  readonly message: TopicMessage;
  /** Comparable by `comparePlaces`. */
  readonly place: string;
  /** False: for those only who read when it came. */
  readonly isKept: boolean;
}

export interface KeptMessages {
  /** Oldest first. */
  readonly messages: readonly PlacedMessage[];
  /** Where the message stands that they come behind, if they were asked for by its id and it is there. */
  readonly behind?: string | undefined;
}

export interface TopicLog {
  append(message: TopicMessage): Promise<void>;
  /** Of which somebody may have appended the same: nobody sees it before the log has decided. */
  appendOnce(message: TopicMessage): Promise<void>;
  /** What is kept of these topics. */
  read(topics: readonly string[], since: Since): Promise<KeptMessages>;
  /** Whether it is there, stored at this time (Unix seconds) or later. */
  has(message: TopicMessage, sinceSeconds: number): Promise<boolean>;
}

/** Two machines' clocks differ by less. */
const skewMs = 60_000;
const topicAt = subjects.notify.topic('x').length - 1;

export function topicOfSubject(subject: string): string {
  return subject.slice(topicAt);
}

export function placed(found: TopicBusMessage): PlacedMessage {
  const message = toTopicMessage(found.payload, {
    busId: found.id,
    topic: topicOfSubject(found.subject),
    storedAtMs: found.storedAt.getTime(),
  });
  return {
    message,
    place: found.position ?? found.sequence,
    isKept: message.expires !== undefined,
  };
}

export function createTopicLog(
  bus: TopicBus,
  {
    clock,
    keptMs,
    durability,
  }: { readonly clock: Clock; readonly keptMs: number; readonly durability: TopicDurability },
): TopicLog {
  /** Everything that was stored since then and is kept still. */
  async function readFrom(topic: string, fromMs: number): Promise<PlacedMessage[]> {
    const nowMs = clock.now();
    const time = new Date(Math.max(fromMs, nowMs - keptMs - skewMs));
    const found: PlacedMessage[] = [];
    for await (const each of bus.read(subjects.notify.topic(topic), { from: { time } })) {
      const made = placed(each);
      if (made.isKept && (made.message.expires ?? 0) * 1_000 > nowMs) found.push(made);
    }
    return found;
  }

  async function readAll(topics: readonly string[], fromMs: number): Promise<PlacedMessage[]> {
    const lists: PlacedMessage[][] = [];
    for (const topic of new Set(topics)) lists.push(await readFrom(topic, fromMs));
    const [first = []] = lists;
    return lists.length === 1 ? first : lists.flat().toSorted(byPlace);
  }

  /** The last one is at the end of its stream, unless that one is not kept. */
  async function latest(topic: string): Promise<readonly PlacedMessage[]> {
    const subject = subjects.notify.topic(topic);
    const sequence = (await bus.stream(subject))?.lastSequence;
    if (sequence === undefined) return [];
    for await (const each of bus.read(subject, { from: { sequence } })) {
      const last = placed(each);
      if (last.isKept && (last.message.expires ?? 0) * 1_000 > clock.now()) return [last];
    }
    return (await readFrom(topic, 0)).slice(-1);
  }

  async function behindId(topics: readonly string[], id: string): Promise<KeptMessages> {
    // An id says about when it was given out: most of the stream need not be looked at. One that others gave
    // out says nothing.
    const soon = behindIn(await readAll(topics, timeOfMessageId(id) - skewMs), id);
    if (soon !== undefined) return soon;
    const messages = await readAll(topics, 0);
    return behindIn(messages, id) ?? { messages };
  }

  async function store(message: TopicMessage, how: TopicDurability): Promise<void> {
    const { id, topic } = message;
    const subject = subjects.notify.topic(topic);
    await bus.publish({ subject, id, payload: message, durability: how });
  }

  return {
    append: (message) => store(message, durability),
    appendOnce: (message) => store(message, durability === 'readers-first' ? 'synced' : durability),
    async read(topics, since) {
      if (since.kind === 'none') return { messages: [] };
      if (since.kind === 'all') return { messages: await readAll(topics, 0) };
      if (since.kind === 'id') return behindId(topics, since.id);
      if (since.kind === 'latest') {
        const last = await Promise.all([...new Set(topics)].map(latest));
        return { messages: last.flat().toSorted(byPlace) };
      }
      const from = await readAll(topics, since.seconds * 1_000 - skewMs);
      return { messages: from.filter(({ message }) => message.time >= since.seconds) };
    },
    async has({ id, topic }, sinceSeconds) {
      const time = new Date(sinceSeconds * 1_000 - skewMs);
      for await (const each of bus.read(subjects.notify.topic(topic), { from: { time } })) {
        if (each.id === id) return true;
      }
      return false;
    },
  };
}

function behindIn(all: readonly PlacedMessage[], id: string): KeptMessages | undefined {
  const behind = all.find(({ message }) => message.id === id)?.place;
  if (behind === undefined) return undefined;
  return { messages: all.filter(({ place }) => comparePlaces(place, behind) > 0), behind };
}

function byPlace(a: PlacedMessage, b: PlacedMessage): number {
  return comparePlaces(a.place, b.place);
}

// Stored messages of topics. The bus holds all of them, so every process reads what any other published.

import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { Since } from './read-params.ts';
import { comparePositions, type TopicBus, type TopicBusMessage } from './topic-bus.ts';
import { timeOfMessageId, toTopicMessage, type TopicMessage } from './topic-message.ts';

/** A message and its position in the bus. */
export interface PositionedMessage {
  readonly message: TopicMessage;
  /** Compared with `comparePositions`. Empty for a scheduled message, which has no position yet. */
  readonly position: string;
}

export interface KeptMessages {
  /** Oldest first. */
  readonly messages: readonly PositionedMessage[];
  /** The position of the message named by `since=<id>`, if it is stored. */
  readonly after?: string | undefined;
}

export interface TopicLog {
  /** A message with a subject is encrypted with the key of the subject. */
  append(message: TopicMessage, subject?: string): Promise<void>;
  read(topics: readonly string[], since: Since): Promise<KeptMessages>;
  /** Whether the message was stored at this time (Unix seconds) or later. */
  has(message: TopicMessage, sinceSeconds: number): Promise<boolean>;
}

/** Upper bound for the difference between the clocks of two machines. */
const skewMs = 60_000;
const topicAt = subjects.notify.topic('x').length - 1;

export function topicOfSubject(subject: string): string {
  return subject.slice(topicAt);
}

export function withPosition(found: TopicBusMessage): PositionedMessage {
  const message = toTopicMessage(found.payload, {
    busId: found.id,
    topic: topicOfSubject(found.subject),
    storedAtMs: found.storedAt.getTime(),
  });
  return { message, position: found.position ?? found.sequence };
}

export function createTopicLog(
  bus: TopicBus,
  { clock, keptMs }: { readonly clock: Clock; readonly keptMs: number },
): TopicLog {
  /** Messages stored since `fromMs` that have not expired. */
  async function readFrom(topic: string, fromMs: number): Promise<PositionedMessage[]> {
    const nowMs = clock.now();
    const time = new Date(Math.max(fromMs, nowMs - keptMs - skewMs));
    const found: PositionedMessage[] = [];
    for await (const each of bus.read(subjects.notify.topic(topic), { from: { time } })) {
      const message = withPosition(each);
      if (isKept(message, nowMs)) found.push(message);
    }
    return found;
  }

  async function readAll(topics: readonly string[], fromMs: number): Promise<PositionedMessage[]> {
    const lists: PositionedMessage[][] = [];
    for (const topic of new Set(topics)) lists.push(await readFrom(topic, fromMs));
    const [first = []] = lists;
    return lists.length === 1 ? first : lists.flat().toSorted(byPosition);
  }

  /** Reads the end of the stream first; the last message there may have expired. */
  async function latest(topic: string): Promise<readonly PositionedMessage[]> {
    const subject = subjects.notify.topic(topic);
    const sequence = (await bus.stream(subject))?.lastSequence;
    if (sequence === undefined) return [];
    for await (const each of bus.read(subject, { from: { sequence } })) {
      const last = withPosition(each);
      if (isKept(last, clock.now())) return [last];
    }
    return (await readFrom(topic, 0)).slice(-1);
  }

  async function readAfter(topics: readonly string[], id: string): Promise<KeptMessages> {
    // Our ids contain the time of the message, so most of the stream can be skipped. Ids that other producers
    // chose do not, and need a second read from the start.
    const recent = messagesAfter(await readAll(topics, timeOfMessageId(id) - skewMs), id);
    if (recent !== undefined) return recent;
    const messages = await readAll(topics, 0);
    return messagesAfter(messages, id) ?? { messages };
  }

  return {
    async append(message, about) {
      const { id, topic } = message;
      const subject = subjects.notify.topic(topic);
      const headers = headersAbout(about);
      await bus.publish({ subject, id, headers, payload: message });
    },
    async read(topics, since) {
      if (since.kind === 'none') return { messages: [] };
      if (since.kind === 'all') return { messages: await readAll(topics, 0) };
      if (since.kind === 'id') return readAfter(topics, since.id);
      if (since.kind === 'latest') {
        const last = await Promise.all([...new Set(topics)].map(latest));
        return { messages: last.flat().toSorted(byPosition) };
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

export function headersAbout(
  subject: string | undefined,
): Readonly<Record<string, string>> | undefined {
  return subject === undefined ? undefined : { [subjectHeader]: subject };
}

/** A message without an expiry is for readers that were connected when it was published. */
function isKept({ message: { expires = 0 } }: PositionedMessage, nowMs: number): boolean {
  return expires * 1_000 > nowMs;
}

function messagesAfter(all: readonly PositionedMessage[], id: string): KeptMessages | undefined {
  const after = all.find(({ message }) => message.id === id)?.position;
  if (after === undefined) return undefined;
  return { messages: all.filter(({ position }) => comparePositions(position, after) > 0), after };
}

function byPosition(a: PositionedMessage, b: PositionedMessage): number {
  return comparePositions(a.position, b.position);
}

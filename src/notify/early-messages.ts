// Messages that readers of this process have, and the log has not yet (`readers-first`).

import { subjects } from '../contracts/subjects.ts';
import type { EarlyTopicMessage, TopicBusMessage } from './topic-bus.ts';
import { placed, type PlacedMessage } from './topic-log.ts';
import type { TopicMessage } from './topic-message.ts';

export interface EarlyMessages {
  /** Without a place, until it is stored. */
  take(message: EarlyTopicMessage, nowMs: number): PlacedMessage;
  /** It has its place now. False: readers do not have it. */
  stored(message: TopicBusMessage): boolean;
  failed(message: TopicMessage): void;
  isFailed(message: PlacedMessage): boolean;
  /** In the order of writing. */
  of(topics: ReadonlySet<string>): PlacedMessage[];
  /** Resolves once all of these topics that are here by now are stored, or failed. */
  settled(topics: readonly string[]): Promise<void>;
  /** Nobody tells any more what becomes of them. */
  forget(): void;
}

type EarlyMessage = { -readonly [Field in keyof PlacedMessage]: PlacedMessage[Field] };

export function createEarlyMessages(): EarlyMessages {
  const messages = new Map<string, EarlyMessage>();
  const failed = new WeakSet<PlacedMessage>();
  const waiters = new Set<{ readonly left: Set<string>; readonly resolve: () => void }>();

  function end(key: string): EarlyMessage | undefined {
    const message = messages.get(key);
    if (!messages.delete(key)) return undefined;
    for (const waiter of waiters) {
      waiter.left.delete(key);
      if (waiter.left.size > 0) continue;
      waiters.delete(waiter);
      waiter.resolve();
    }
    return message;
  }

  return {
    take({ id, subject, payload }, nowMs) {
      const storedAt = new Date(nowMs);
      const about = { sequence: '', position: undefined, storedAt, headers: {} };
      const message = placed({ id, subject, payload, ...about });
      messages.set(keyOf(subject, id), message);
      return message;
    },
    stored({ id, subject, position, sequence }) {
      const message = messages.size === 0 ? undefined : end(keyOf(subject, id));
      if (message === undefined) return false;
      message.place = position ?? sequence;
      return true;
    },
    failed({ id, topic }) {
      const message = end(keyOf(subjects.notify.topic(topic), id));
      if (message !== undefined) failed.add(message);
    },
    isFailed: (message) => failed.has(message),
    of: (topics) => [...messages.values()].filter(({ message }) => topics.has(message.topic)),
    async settled(topics) {
      if (messages.size === 0) return;
      const wanted = new Set(topics);
      const left = new Set(
        [...messages].flatMap(([key, { message }]) => (wanted.has(message.topic) ? [key] : [])),
      );
      if (left.size === 0) return;
      await new Promise<void>((resolve) => waiters.add({ left, resolve }));
    },
    forget() {
      messages.clear();
      for (const { resolve } of waiters) resolve();
      waiters.clear();
    },
  };
}

function keyOf(subject: string, id: string): string {
  return `${subject} ${id}`;
}

// Which names may be topics, and which topics this process has seen: new ones count against their visitor.

import type { Clock } from '../foundation/clock.ts';
import { ntfyError } from './ntfy-problems.ts';
import type { VisitorBook } from './visitor-limits.ts';

const namePattern = /^[-_A-Za-z0-9]{1,64}$/;

/** Paths of ntfy that a topic would hide. */
const ntfyReserved = [
  'docs',
  'static',
  'file',
  'app',
  'metrics',
  'account',
  'settings',
  'signup',
  'login',
  'v1',
];

/** Paths of the product, which serves topics at the root of the same port. */
const productReserved = ['api', 'admin', 'console', 'ws', 'health'];

export const reservedTopics: readonly string[] = [...ntfyReserved, ...productReserved];

/** Sequence ids have the same form. */
export function isTopicName(text: string): boolean {
  return namePattern.test(text);
}

export interface KnownTopics {
  /** Throws if the name is not allowed, or if there are too many topics. */
  touch(topic: string, visitor: string): void;
}

const idleMs = 16 * 3_600_000;

export function createKnownTopics(options: {
  readonly visitors: VisitorBook;
  readonly clock: Clock;
  readonly topicsMax: number;
  readonly reserved: readonly string[];
}): KnownTopics {
  const { visitors, clock, topicsMax, reserved } = options;
  const lastUsedMs = new Map<string, number>();

  return {
    touch(topic, visitor) {
      if (!isTopicName(topic)) throw ntfyError('topicInvalid');
      if (reserved.includes(topic)) throw ntfyError('topicDisallowed');
      const nowMs = clock.now();
      if (!lastUsedMs.has(topic)) {
        if (lastUsedMs.size >= topicsMax) {
          for (const [name, usedMs] of lastUsedMs) {
            if (nowMs - usedMs > idleMs) lastUsedMs.delete(name);
          }
        }
        if (lastUsedMs.size >= topicsMax) throw ntfyError('tooManyTopics');
        visitors.newTopic(visitor);
      }
      lastUsedMs.set(topic, nowMs);
    },
  };
}

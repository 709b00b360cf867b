// Which topics this process has heard of: new ones cost their visitor something.

import type { Clock } from '../foundation/clock.ts';
import { refused } from './ntfy-problems.ts';
import { checkTopic } from './topic-name.ts';
import type { VisitorBook } from './visitor-limits.ts';

export interface KnownTopics {
  /** Throws for names that may not be, and when there are too many. */
  touch(topic: string, visitor: string | undefined): void;
  readonly size: number;
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
      checkTopic(topic, reserved);
      const nowMs = clock.now();
      if (!lastUsedMs.has(topic)) {
        if (lastUsedMs.size >= topicsMax) {
          for (const [name, usedMs] of lastUsedMs) {
            if (nowMs - usedMs > idleMs) lastUsedMs.delete(name);
          }
        }
        if (lastUsedMs.size >= topicsMax) throw refused('tooManyTopics');
        // Exempt ones have no name.
        if (visitor !== undefined) visitors.newTopic(visitor);
      }
      lastUsedMs.set(topic, nowMs);
    },
    get size() {
      return lastUsedMs.size;
    },
  };
}

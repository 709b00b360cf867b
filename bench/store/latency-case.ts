// From the call of `append` until a live subscriber has the event.

import { setTimeout } from 'node:timers/promises';
import type { Case, Runner } from '../benchmark.ts';
import { sampleEvent, streamOf } from './sample-events.ts';
import type { Appending, Engine, Follower, Reading } from './subject-store.ts';

export interface LatencySubject {
  readonly name: string;
  readonly open: () => Promise<Appending & Reading>;
}

export function latencyCase(engine: Engine, subjects: readonly LatencySubject[]): Case {
  return {
    name: `subscription latency / ${engine}`,
    measure: 'latency',
    goals: [
      { vs: 'emmett', ratioMin: 2 },
      { vs: 'emmett (p99)', ratioMin: 2 },
    ],
    subjects: subjects.map(({ name, open }) => ({
      name,
      setup: async () => following(await open()),
    })),
  };
}

let streams = 0;
let number = 1_000_000_000;

async function following(store: Appending & Reading): Promise<Runner> {
  return {
    async run(n, record) {
      // The follower runs only during its turn, because constant polling would slow the other subjects.
      const follower = await store.follow();
      const appender = createAppender(store);
      try {
        await untilSeen(appender, follower);
        for (let done = 0; done < n; done += 1) {
          const startedAt = performance.now();
          const seen = follower.whenSeen(appender.next());
          await appender.append();
          await seen;
          record(performance.now() - startedAt);
        }
      } finally {
        await follower.close();
      }
    },
  };
}

/**
 * Waits until the follower receives events: a poller does not report its start, and sleeps longer while
 * no event arrives.
 */
async function untilSeen(appender: Appender, follower: Follower): Promise<void> {
  for (let isSeen = false; !isSeen;) {
    const seen = follower.whenSeen(appender.next()).then(() => true);
    await appender.append();
    isSeen = await Promise.race([seen, setTimeout(300, false)]);
  }
}

interface Appender {
  /** The number of the next event. */
  next(): number;
  append(): Promise<void>;
}

function createAppender(store: Appending): Appender {
  streams += 1;
  const account = `followed-${streams}`;
  let there = 0;
  return {
    next: () => number,
    async append() {
      const event = sampleEvent(number, account);
      number += 1;
      await store.append(streamOf(account), there, [event]);
      there += 1;
    },
  };
}

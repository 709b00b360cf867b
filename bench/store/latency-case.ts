// From the call of append until a live subscriber has the event.

import { setTimeout } from 'node:timers/promises';
import type { Case, Runner } from '../benchmark.ts';
import { sampleEvent, streamOf } from './sample-events.ts';
import type { Appending, Engine, Reading } from './subject-store.ts';

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
      streams += 1;
      const account = `followed-${streams}`;
      // It follows only while it is its turn: one that polls without a pause would slow the others.
      const follower = await store.follow();
      let there = 0;
      const once = async (): Promise<number> => {
        number += 1;
        const event = sampleEvent(number, account);
        const seen = follower.whenSeen(number);
        const startedAt = performance.now();
        await store.append(streamOf(account), there, [event]);
        there += 1;
        await seen;
        return performance.now() - startedAt;
      };
      // The first ones make sure that a poller has begun, and wake it: it sleeps longer and longer
      // while nothing comes.
      while ((await Promise.race([once(), setTimeout(300, 0)])) === 0);
      for (let done = 0; done < n; done += 1) record(await once());
      await follower.close();
    },
  };
}

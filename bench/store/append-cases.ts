// Appends one event at a time with one writer and with 32, and a hundred events per call. Calls are
// counted, not events.

import { ours, type Case, type Goal, type Runner, type Subject } from '../benchmark.ts';
import { sampleEvent, streamOf } from './sample-events.ts';
import type { Appending, Engine } from './subject-store.ts';

type OpenAppending = (subject: string) => Promise<Appending>;

/** A typical stream length; after it, the writer starts a new stream. */
const eventsPerStream = 100;
let accounts = 0;

export function appendCases(
  engine: Engine,
  subjects: readonly string[],
  open: OpenAppending,
): Case[] {
  const appendCase = (
    name: string,
    size: { readonly writers: number; readonly events: number },
    goals: readonly Goal[],
  ): Case => ({
    name: `${name} / ${engine}`,
    measure: 'throughput',
    goals,
    subjects: subjects.map((subject): Subject => ({
      name: subject,
      setup: async () => appending(await open(subject), size),
    })),
  });
  return [
    appendCase('append 1, 1 writer', { writers: 1, events: 1 }, [{ vs: 'emmett', ratioMin: 2 }]),
    appendCase('append 1, 32 writers', { writers: 32, events: 1 }, [{ vs: 'emmett', ratioMin: 5 }]),
    appendCase('append batch 100', { writers: 1, events: 100 }, [
      { vs: 'emmett', ratioMin: 2 },
      { vs: 'raw insert', ratioMin: 0.5 },
    ]),
  ];
}

async function appending(
  store: Appending,
  size: { readonly writers: number; readonly events: number },
): Promise<Runner> {
  const before = await store.count();
  let calls = 0;
  const writers = Array.from({ length: size.writers }, () => createWriter(store, size.events));
  return {
    async run(n) {
      let left = n;
      calls += n;
      const work = async (append: () => Promise<void>): Promise<void> => {
        while (left > 0) {
          left -= 1;
          await append();
        }
      };
      await Promise.all(writers.map(work));
    },
    async teardown() {
      const [found, expected] = [(await store.count()) - before, calls * size.events];
      if (found !== expected)
        throw new Error(`the store has ${found} events instead of ${expected}`);
    },
  };
}

function createWriter(store: Appending, events: number): () => Promise<void> {
  let account = '';
  let there = eventsPerStream;
  return async () => {
    if (there >= eventsPerStream) {
      accounts += 1;
      account = `account-${accounts}`;
      there = 0;
    }
    const batch = Array.from({ length: events }, (_event, at) => sampleEvent(there + at, account));
    await store.append(streamOf(account), there, batch);
    there += events;
  };
}

/** The subjects: Millrace, the peer, and the limit of the engine. */
export const appenders = [ours, 'emmett', 'raw insert'] as const;

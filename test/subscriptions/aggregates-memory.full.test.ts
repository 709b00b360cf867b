import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openMemory } from '../../src/engines/memory/index.ts';
import type { EventStore, FeedItem, RecordedEvent } from '../../src/store/index.ts';
import { toPosition } from '../../src/store/position.ts';
import { startSubscription, subscription } from '../../src/subscriptions/index.ts';
import { memorySubscriptionStorage } from '../../src/testing/support/subscriptions/memory/storage.ts';
import { newEvent, soakMinutes, streamName } from '../store/rig.ts';

const { aggregates, growthMaxMiB } =
  soakMinutes > 0
    ? { aggregates: 1_000_000, growthMaxMiB: 64 }
    : { aggregates: 60_000, growthMaxMiB: 8 };
const pageSize = 1_000;
const mebibyte = 1_048_576;

/** The heap after garbage collection. */
function heapMiB(): number {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed / mebibyte;
}

/** Creates events only while they are read, so the store itself needs no memory. */
function endlessStore(): EventStore {
  const template = newEvent('template');
  const eventAt = (number: number): RecordedEvent => ({
    ...template,
    eventId: `e${number}`,
    stream: streamName(number),
    revision: 0,
    position: toPosition(number),
    recordedAt: '2025-09-30T10:00:00.000Z',
  });
  return Object.assign(openMemory().store, {
    // Events that wait for long are removed from memory and read again.
    findEvent: async (_stream: string, eventId: string) => eventAt(Number(eventId.slice(1))),
    async *subscribe({
      signal,
    }: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<FeedItem> {
      for (let from = 1; from <= aggregates; from += pageSize) {
        const events = Array.from({ length: pageSize }, (_, index) => eventAt(from + index));
        yield { kind: 'events', events, position: toPosition(from + pageSize - 1) };
        await new Promise(setImmediate);
      }
      yield { kind: 'caughtUp', position: toPosition(aggregates) };
      await new Promise((resolve) => {
        if (signal?.aborted === true) resolve(undefined);
        else signal?.addEventListener('abort', resolve);
      });
    },
  });
}

test(`${aggregates} distinct aggregates grow the process by less than ${growthMaxMiB} MiB`, async () => {
  const store = endlessStore();
  let count = 0;
  let heapAtTenth = 0;
  const all = Promise.withResolvers<void>();
  const definition = subscription({
    name: 'sub:rig:memory:v1',
    async handler() {
      count += 1;
      if (count === aggregates / 10) heapAtTenth = heapMiB();
      // A few attempts fail, because retries must not accumulate either.
      if (count % 10_000 === 0) throw new Error('random failure');
      if (count >= aggregates) all.resolve();
    },
  });
  const subscriptions = memorySubscriptionStorage();
  await using runner = await startSubscription({ store, subscriptions }, definition);
  await all.promise;
  const growth = heapMiB() - heapAtTenth;
  assert.ok(growth < growthMaxMiB, `grew by ${growth.toFixed(1)} MiB`);
  assert.ok(runner.status.shards.every(({ inFlight }) => inFlight <= 2_000 + pageSize));
});

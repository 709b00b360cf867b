import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from '../../testing/conformance/store/event-store.ts';
import { newEvent, newEvents, newStream } from '../../testing/conformance/store/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { memoryEventStore } from './memory-event-store.ts';

runConformance(test, 'the event store in memory', {
  capabilities: memoryEventStore().capabilities,
  open: async (options) => memoryEventStore(options),
});

test('the event store in memory stamps events with the given clock', async () => {
  const clock = fakeClock({ nowMs: 1_000 });
  await using store = memoryEventStore({ clock });
  const stream = newStream();
  await store.append(stream, [newEvent()]);
  await clock.advance(2_000);
  await store.append(stream, newEvents(2));
  assert.deepEqual(
    (await store.readStream(stream).toArray()).map(({ recordedAt }) => Date.parse(recordedAt)),
    [1_000, 3_000, 3_000],
  );
});

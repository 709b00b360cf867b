import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runConformance } from '../../testing/conformance/store/event-store.ts';
import { newEvent, newEvents, newStream } from '../../testing/conformance/store/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { openMemory } from './open-memory.ts';

runConformance(test, 'the event store in memory', {
  capabilities: openMemory().store.capabilities,
  open: async (options) => openMemory(options).store,
});

test('the event store in memory stamps events with the given clock', async () => {
  const clock = fakeClock({ nowMs: 1_000 });
  await using db = openMemory({ clock });
  const { store } = db;
  const stream = newStream();
  await store.append(stream, [newEvent()]);
  await clock.advance(2_000);
  await store.append(stream, newEvents(2));
  assert.deepEqual(
    (await store.readStream(stream).toArray()).map(({ recordedAt }) => Date.parse(recordedAt)),
    [1_000, 3_000, 3_000],
  );
});

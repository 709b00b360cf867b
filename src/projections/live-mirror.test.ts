import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { createLiveMirror, type MirrorMessage } from './live-mirror.ts';
import type { MirrorPost } from './run/mirror-buffer.ts';

const stream = 'banking.account.v1-core-a-1';

async function until(holds: () => boolean): Promise<void> {
  for (let round = 0; round < 10_000; round += 1) {
    if (holds()) return;
    await new Promise(setImmediate);
  }
  assert.fail('the condition never held');
}

test('listeners receive new events as messages of the event bus', async () => {
  await using db = openMemory();
  await db.store.append(stream, [newEvent()]);
  await using mirror = createLiveMirror(db.store);
  const received: MirrorMessage[] = [];
  const end = mirror.listen((message) => received.push(message));
  await mirror.start();
  const event = newEvent({ causationId: 'c-1', user: { id: 'u-1' }, payload: { text: 'hi' } });
  await db.store.append(stream, [event, newEvent()]);
  await until(() => received.length === 2);
  assert.deepEqual(received[0], {
    eventId: event.eventId,
    eventType: event.type,
    aggregateId: event.aggregate.id,
    payload: { text: 'hi' },
    metadata: { correlationId: event.correlationId, causationId: 'c-1', userId: 'u-1' },
  });
  assert.deepEqual([received[1]?.metadata.causationId, received[1]?.metadata.userId], [null, null]);
  end();
  await db.store.append(stream, [newEvent()]);
  await new Promise(setImmediate);
  assert.equal(received.length, 2);
});

test('a filter selects events, and a failing listener does not affect the others', async () => {
  await using db = openMemory();
  const warnings: string[] = [];
  const ignore = (): void => undefined;
  const warn = (_fields: object, message: string): void => void warnings.push(message);
  await using mirror = createLiveMirror(db.store, {
    filter: { types: ['account.closed.v1'] },
    observer: { log: { debug: ignore, info: ignore, warn, error: ignore } },
  });
  const received: string[] = [];
  mirror.listen(() => {
    throw new Error('listener defect');
  });
  mirror.listen(({ eventType }) => received.push(eventType));
  await mirror.start();
  await db.store.append(stream, [newEvent(), newEvent({ type: 'account.closed.v1' })]);
  await until(() => received.length === 1);
  assert.deepEqual(received, ['account.closed.v1']);
  assert.deepEqual(warnings, ['live mirror listener failed']);
});

test('a hanging outlet delays no listener, and the oldest messages are dropped and counted', async () => {
  await using db = openMemory();
  const hanging = Promise.withResolvers<void>();
  const posts: MirrorPost[] = [];
  let counted = 0;
  await using mirror = createLiveMirror(db.store, {
    bufferMax: 10,
    outlet: {
      async publish(some) {
        posts.push(...some);
        await hanging.promise;
      },
    },
    observer: {
      count: (name, _attributes, by = 1) => {
        if (name === 'live_mirror_dropped_total') counted += by;
      },
    },
  });
  const received: string[] = [];
  mirror.listen(({ eventId }) => received.push(eventId));
  await mirror.start();
  const first = newEvent();
  await db.store.append(stream, [first]);
  await until(() => posts.length === 1);
  const events = Array.from({ length: 100 }, () => newEvent());
  for (const event of events) await db.store.append(stream, [event]);
  await until(() => received.length === 101);
  assert.deepEqual([mirror.dropped, counted], [90, 90]);
  hanging.resolve();
  await until(() => posts.length === 11);
  const newest = events.slice(-10).map(({ eventId }) => eventId);
  const passed = posts.slice(1).map(({ text }) => (JSON.parse(text) as MirrorMessage).eventId);
  assert.deepEqual(passed, newest);
});

test('rejected messages are dropped and logged once, and later events are published', async () => {
  await using db = openMemory();
  const clock = fakeClock();
  const warnings: string[] = [];
  const ignore = (): void => undefined;
  const warn = (_fields: object, message: string): void => void warnings.push(message);
  let isDown = true;
  let published = 0;
  await using mirror = createLiveMirror(db.store, {
    clock,
    outlet: {
      async publish(some) {
        if (isDown) throw new Error('connection refused');
        published += some.length;
      },
    },
    observer: { log: { debug: ignore, info: ignore, warn, error: ignore } },
  });
  await mirror.start();
  for (let count = 1; count <= 3; count += 1) {
    await db.store.append(stream, [newEvent()]);
    await until(() => mirror.dropped === count);
    await clock.advance(1_000);
  }
  isDown = false;
  await db.store.append(stream, [newEvent()]);
  await until(() => published === 1);
  assert.deepEqual(
    [mirror.dropped, warnings],
    [3, ['live mirror publish failed; dropping events']],
  );
});

test('stop does not wait for a hanging outlet', async () => {
  await using db = openMemory();
  let isCalled = false;
  const publish = (): Promise<void> => {
    isCalled = true;
    return new Promise(() => undefined);
  };
  const mirror = createLiveMirror(db.store, { outlet: { publish } });
  await mirror.start();
  await db.store.append(stream, [newEvent()]);
  await until(() => isCalled);
  await mirror.stop();
  assert.deepEqual([mirror.state, mirror.dropped], ['stopped', 1]);
});

test('start and stop in any order leave nothing running', async () => {
  await using db = openMemory();
  await stressLifecycle({
    create: () => createLiveMirror(db.store, { outlet: { publish: async () => undefined } }),
    rounds: 200,
  });
});

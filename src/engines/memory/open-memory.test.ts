import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { inlineProjections } from '../../projections/inline-projections.ts';
import {
  assertTotal,
  newCounters,
} from '../../testing/conformance/projections/projection-fixture.ts';
import { newEvent, newStream } from '../../testing/conformance/store/fixture.ts';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createTasks } from '../../tasks/create-tasks.ts';
import { taskType } from '../../tasks/task-type.ts';
import { startOutboxProjector } from '../../outbox/outbox-projector.ts';
import { startSubscription } from '../../subscriptions/subscription-runner.ts';
import { subscription } from '../../subscriptions/subscription.ts';
import { openMemory } from './index.ts';

const name = 'sub:banking:handle:v1';

test('a subscription of a handle reads the store of this handle', async () => {
  await using db = openMemory();
  const stream = newStream();
  await db.store.append(stream, [newEvent(), newEvent()]);
  const seen: number[] = [];
  const each = subscription({ name, handler: ({ revision }) => void seen.push(revision) });
  await using runner = await startSubscription(db, each);
  await runner.whenCaughtUp();
  assert.deepEqual(seen, [0, 1]);
  const states = await db.subscriptions.checkpoints.list();
  assert.deepEqual(
    states.map((state) => state.subscription),
    [name],
  );
});

test('two handles share nothing', async () => {
  await using one = openMemory();
  await using other = openMemory();
  const stream = newStream();
  await one.store.append(stream, [newEvent()]);
  await one.outbox.enqueueMany([newMessage()]);
  await one.subscriptions.checkpoints.open(name, 1);
  assert.equal(await other.store.streamInfo(stream), undefined);
  assert.deepEqual(await other.outbox.list({}), []);
  assert.deepEqual(await other.subscriptions.checkpoints.list(), []);
  assert.notEqual(one.readModels, other.readModels);
});

test('every role uses the clock of the handle', async () => {
  const clock = fakeClock({ nowMs: 5_000 });
  await using db = openMemory({ clock });
  const stream = newStream();
  await db.store.append(stream, [newEvent()]);
  const [event] = await db.store.readStream(stream).toArray();
  assert.equal(Date.parse(event?.recordedAt ?? ''), 5_000);
  await db.outbox.enqueueMany([newMessage()]);
  const [message] = await db.outbox.list({});
  assert.equal(message?.createdAt.getTime(), 5_000);
  const key = { subscription: name, shard: 0 };
  await db.subscriptions.checkpoints.open(name, 1);
  await db.subscriptions.leases.acquire(key, 'ada', 1_000);
  await clock.advance(400);
  const [lease] = await db.subscriptions.leases.list(name);
  assert.equal(lease?.remainingMs, 600);
});

test('an append of an inline projection writes the documents of the handle', async () => {
  await using db = openMemory();
  const counters = newCounters();
  const store = await inlineProjections(db, [counters.projection()]);
  await store.append(counters.stream('a'), counters.add(1, 2));
  await assertTotal(counters.documents(db), 'a', [1, 2]);
});

test('a projector writes into the outbox of the handle', async () => {
  await using db = openMemory();
  await db.store.append(newStream(), [newEvent()]);
  const mapper = {
    map: ({ type }: { readonly type: string }) => ({
      integrationType: 'webhook:x',
      eventType: type,
      payload: {},
    }),
  };
  await using runner = await startOutboxProjector(db, { name, mapper });
  await runner.whenCaughtUp();
  assert.equal((await db.outbox.list({})).length, 1);
});

test('jobs run on the tasks of the handle', async () => {
  await using db = openMemory();
  await using tasks = createTasks(db.tasks, { types: [taskType('email-send')] });
  const { id } = await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
  const [count] = await db.tasks.counts();
  assert.equal(count?.states.queued, 1);
  assert.equal((await tasks.list()).tasks[0]?.id, id);
});

test('a closed handle creates no role, and its store rejects calls', async () => {
  const db = openMemory();
  const { store } = db;
  await db[Symbol.asyncDispose]();
  const isClosed = (error: unknown): boolean => hasCode(error, 'STORE_CLOSED');
  assert.throws(() => db.outbox, isClosed);
  await assert.rejects(store.head(), isClosed);
  await db[Symbol.asyncDispose]();
});

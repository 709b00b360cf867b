import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { createRig, labelOf, streamOf, until } from '../testing/support/subscriptions/rig.ts';
import { Snooze, Terminal } from '../foundation/handler-outcome.ts';
import type { MemoryTransaction } from '../testing/support/subscriptions/memory/storage.ts';
import { subscriptionAdmin } from './subscription-admin.ts';
import { createSubscriptionRunner, startSubscription } from './subscription-runner.ts';
import { subscription } from './subscription.ts';

const name = 'sub:banking:test:v1';

test('a new subscription catches up from the start, then receives live events', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  await append('b', 1);
  const seen: string[] = [];
  const each = subscription({ name, handler: (event) => void seen.push(labelOf(event)) });
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, () => seen.length === 3);
  await append('a', 3);
  await until(clock, () => seen.length === 4);
  assert.deepEqual(seen, ['a1', 'a2', 'b1', 'a3']);
  assert.equal(runner.status.shards[0]?.isLive, true);
});

test('a restart continues from the checkpoint, and from: end skips earlier events', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  const seen: string[] = [];
  const each = subscription({ name, handler: (event) => void seen.push(labelOf(event)) });
  {
    await using runner = await startSubscription(db, each, { clock });
    await until(clock, () => seen.length === 2);
    void runner;
  }
  await append('a', 3);
  const late: string[] = [];
  const fromEnd = subscription({
    name: 'sub:banking:late:v1',
    from: 'end',
    handler: (event) => void late.push(labelOf(event)),
  });
  await using second = await startSubscription(db, fromEnd, { clock });
  await using again = await startSubscription(db, each, { clock });
  await until(clock, () => seen.length === 3 && second.status.shards[0]?.isLive === true);
  await append('a', 4);
  await until(clock, () => seen.length === 4 && late.length === 1);
  assert.deepEqual(seen, ['a1', 'a2', 'a3', 'a4']);
  assert.deepEqual(late, ['a4']);
  assert.equal((await again.lag()).seconds, 0);
});

test('progress during the check of waitFor ends the wait without a poll', async () => {
  const { db, clock, append } = createRig();
  let gate = Promise.withResolvers<void>();
  let calls = 0;
  const each = subscription({
    name,
    async handler() {
      calls += 1;
      await gate.promise;
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  // The handler ends one turn later each time, so that one round ends between the check and the wait.
  for (let turns = 0; turns < 60; turns += 1) {
    gate = Promise.withResolvers();
    await append('a', turns + 1);
    await until(clock, () => calls > turns);
    const waiting = runner.waitFor(await db.store.head(), AbortSignal.timeout(5_000));
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    gate.resolve();
    await waiting;
  }
});

test('streams are handled in parallel, each in order', async () => {
  const { db, clock, append } = createRig();
  for (const id of ['a', 'b', 'c', 'd']) await append(id, 1, 2);
  const open = new Map<string, () => void>();
  const finished: string[] = [];
  const each = subscription({
    name,
    lanes: 64,
    handler: (event) =>
      new Promise((resolve) => {
        open.set(labelOf(event), () => {
          finished.push(labelOf(event));
          resolve();
        });
      }),
  });
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, () => open.size === 4);
  assert.deepEqual([...open.keys()].toSorted(), ['a1', 'b1', 'c1', 'd1']);
  open.get('b1')?.();
  await until(clock, () => open.has('b2'));
  assert.equal(runner.status.shards[0]?.position, '0000000000000000');
  for (const label of ['a1', 'c1', 'd1', 'b2']) open.get(label)?.();
  await until(clock, () => open.size === 8);
  for (const label of ['a2', 'c2', 'd2']) open.get(label)?.();
  await until(clock, () => runner.status.shards[0]?.inFlight === 0);
  assert.ok(finished.indexOf('a1') < finished.indexOf('a2'));
});

test('a failing event is retried on schedule and in order, while other streams continue', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  await append('b', 1);
  const seen: string[] = [];
  const attemptsAtMs: number[] = [];
  const startMs = clock.now();
  const each = subscription({
    name,
    // The failing stream and the other one share one lane.
    lanes: 1,
    handler(event) {
      if (labelOf(event) === 'a1') {
        attemptsAtMs.push(clock.now() - startMs);
        if (attemptsAtMs.length < 4) throw new Error('timeout');
      }
      seen.push(labelOf(event));
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, () => seen.includes('b1'));
  assert.deepEqual(seen, ['b1']);
  await until(clock, () => seen.length === 3);
  assert.deepEqual(seen, ['b1', 'a1', 'a2']);
  assert.deepEqual(attemptsAtMs, [0, 1_000, 3_000, 7_000]);
  await runner.whenCaughtUp();
});

test('after six attempts an event is dead-lettered with its history, an alert and a gauge', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  const gauges: [string, number][] = [];
  const counted = new Map<string, number>();
  const observer: Observer = {
    gauge: (metric, value) => void gauges.push([metric, value]),
    count: (metric, { status }, by = 1) => {
      const key = `${metric} ${String(status)}`;
      counted.set(key, (counted.get(key) ?? 0) + by);
    },
  };
  const alerts: string[] = [];
  const seen: string[] = [];
  const each = subscription({
    name,
    handler(event) {
      if (labelOf(event) === 'a1') throw new Error('invalid syntax');
      seen.push(labelOf(event));
    },
  });
  await using runner = await startSubscription(db, each, {
    clock,
    observer,
    onAlert: ({ eventId }) => void alerts.push(eventId),
  });
  await until(clock, () => seen.length === 1);
  const [letter] = await db.subscriptions.deadLetters.list({});
  assert.ok(letter !== undefined);
  const { id, eventId, createdAt, cause, history, correlationId, position, ...rest } = letter;
  assert.deepEqual(rest, {
    eventType: 'account.credited.v1',
    aggregateId: 'a-1',
    payload: { number: 1 },
    error: 'invalid syntax',
    attempts: 6,
    status: 'pending',
    replayedAt: null,
    replayedBy: null,
    notes: '',
    handler: name,
    shard: 0,
    tenant: 'core',
    stream: streamOf('a'),
    revision: 0,
    parked: false,
    replayRequestedAt: null,
    discardedAt: null,
    discardedBy: null,
    discardReason: null,
  });
  assert.equal(cause?.name, 'Error');
  assert.match(cause.fingerprint, /^[0-9a-f]{12}$/);
  assert.deepEqual(alerts, [eventId]);
  assert.equal(history.length, 6);
  assert.equal(counted.get('events_processed_total error'), 6);
  assert.equal(counted.get('events_processed_total success'), 1);
  await until(clock, () =>
    gauges.some(([metric, size]) => metric === 'dead_letter_queue_size' && size === 1),
  );
  await runner.whenCaughtUp();
  void [id, createdAt, correlationId, position];
});

test('a replay runs only the failed handler, and only a success marks it as replayed', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1);
  let isBroken = true;
  const seen: string[] = [];
  const others: string[] = [];
  const failing = subscription({
    name,
    handler(event) {
      if (isBroken) throw new Terminal('no');
      seen.push(labelOf(event));
    },
  });
  const other = subscription({
    name: 'sub:banking:other:v1',
    handler: (event) => void others.push(labelOf(event)),
  });
  await using runner = await startSubscription(db, failing, { clock });
  await using second = await startSubscription(db, other, { clock });
  const { deadLetters } = db.subscriptions;
  await until(clock, async () => (await deadLetters.count({ status: 'pending' })) === 1);
  const [letter] = await deadLetters.list({});
  const id = letter?.id ?? '';
  const admin = subscriptionAdmin(db, { clock });
  await admin.replay(id, { by: 'ada' });
  assert.equal((await admin.letter(id)).status, 'pending');
  await until(clock, async () => (await admin.letter(id)).attempts === 2);
  assert.equal((await admin.letter(id)).status, 'pending');
  isBroken = false;
  await admin.replay(id, { by: 'bob' });
  await until(clock, async () => (await admin.letter(id)).status === 'replayed');
  assert.deepEqual([seen, others], [['a1'], ['a1']]);
  assert.equal((await admin.letter(id)).replayedBy, 'bob');
  await assert.rejects(admin.replay(id, { by: 'eve' }), (error) =>
    hasCode(error, 'DEAD_LETTER_CLOSED'),
  );
  await assert.rejects(admin.replay('x', { by: 'eve' }), (error) =>
    hasCode(error, 'DEAD_LETTER_UNKNOWN'),
  );
  void [runner, second];
});

test('with park, later events of the stream wait across a restart and drain in order after the replay', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  await append('b', 1);
  let isBroken = true;
  const seen: string[] = [];
  const each = subscription({
    name,
    onDeadLetter: 'park',
    handler(event) {
      if (isBroken && labelOf(event) === 'a1') throw new Terminal('no');
      seen.push(labelOf(event));
    },
  });
  const { deadLetters, waiting } = db.subscriptions;
  {
    await using runner = await startSubscription(db, each, { clock });
    await until(clock, async () => (await waiting.count(name)) === 2);
    // The checkpoint passes parked events.
    await runner.whenCaughtUp();
  }
  await append('a', 3);
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, async () => (await waiting.count(name)) === 3);
  await append('b', 2);
  await until(clock, () => seen.includes('b2'));
  assert.deepEqual(seen, ['b1', 'b2']);
  isBroken = false;
  assert.equal(await deadLetters.replay({ handler: name }, { by: 'ada', atMs: clock.now() }), 1);
  await until(clock, () => seen.length === 5);
  await append('a', 4);
  await until(clock, () => seen.length === 6);
  assert.deepEqual(seen, ['b1', 'b2', 'a1', 'a2', 'a3', 'a4']);
  assert.equal(await waiting.count(name), 0);
  assert.equal(await deadLetters.count({ status: 'replayed' }), 1);
  void runner;
});

test('discarding a dead letter releases the events parked after it', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2, 3);
  const seen: string[] = [];
  const each = subscription({
    name,
    onDeadLetter: 'park',
    handler(event) {
      if (labelOf(event) === 'a1') throw new Terminal('no');
      seen.push(labelOf(event));
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  const { deadLetters, waiting } = db.subscriptions;
  await until(clock, async () => (await waiting.count(name)) === 3);
  const admin = subscriptionAdmin(db, { clock });
  const [letter] = await deadLetters.list({});
  await admin.discard(letter?.id ?? '', { by: 'ada', reason: 'a test payment' });
  await until(clock, () => seen.length === 2);
  assert.deepEqual(seen, ['a2', 'a3']);
  assert.equal((await admin.letter(letter?.id ?? '')).discardReason, 'a test payment');
  void runner;
});

test('a snoozed event and the later events of its stream move to the database, and other streams continue', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  let isClosed = true;
  const seen: string[] = [];
  const each = subscription({
    name,
    lanes: 2,
    inFlightMax: 10,
    handler(event) {
      if (isClosed && event.stream === streamOf('a')) throw new Snooze(3_600_000);
      seen.push(labelOf(event));
    },
  });
  await using runner = await startSubscription(db, each, { clock, windowMax: 50, pageSize: 5 });
  for (let number = 1; number <= 200; number += 1) await append(`b${number % 20}-`, number);
  for (let number = 3; number <= 40; number += 1) await append('a', number);
  await append('c', 1);
  await until(clock, () => seen.includes('c1'));
  assert.equal(seen.length, 201);
  let isCaughtUp = false;
  void runner.whenCaughtUp().then(() => (isCaughtUp = true));
  await until(clock, () => isCaughtUp);
  assert.equal(await db.subscriptions.waiting.count(name), 40);
  isClosed = false;
  await clock.advance(3_600_000);
  await until(clock, () => seen.length === 241);
  assert.deepEqual(
    seen.slice(201),
    Array.from({ length: 40 }, (_, index) => `a${index + 1}`),
  );
});

test('a handler that exceeds its timeout is aborted by its signal and retried', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1);
  const signals: AbortSignal[] = [];
  let calls = 0;
  const each = subscription({
    name,
    timeoutMs: 500,
    async handler(_event, { signal, attempt }) {
      calls += 1;
      assert.equal(attempt, calls);
      signals.push(signal);
      if (calls === 1) await new Promise(() => undefined);
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, () => calls === 2);
  assert.equal(signals[0]?.aborted, true);
  assert.ok(hasCode(signals[0]?.reason, 'HANDLER_TIMEOUT'));
  await runner.whenCaughtUp();
});

test('stop waits for the running handler, starts no other, and writes the checkpoint', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2);
  const release = Promise.withResolvers<void>();
  const seen: string[] = [];
  const each = subscription({
    name,
    async handler(event) {
      seen.push(labelOf(event));
      await release.promise;
    },
  });
  const runner = await startSubscription(db, each, { clock });
  await until(clock, () => seen.length === 1);
  const stopped = runner.stop();
  release.resolve();
  await stopped;
  assert.deepEqual(seen, ['a1']);
  const state = await db.subscriptions.checkpoints.get(name);
  assert.deepEqual(state?.positions, ['0000000000000001']);
  const [lease] = await db.subscriptions.leases.list(name);
  assert.equal(lease?.remainingMs, 0);
});

test('effects in the transaction happen once, even when the response to a commit is lost', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2, 3);
  const table: string[] = [];
  const storage = db.subscriptions;
  let commits = 0;
  const each = subscription<{ onCommit(effect: () => void): void }>({
    name,
    async handler(event, context) {
      const transaction = await context.transaction();
      transaction.onCommit(() => table.push(labelOf(event)));
    },
  });
  const { MillraceError } = await import('../foundation/error.ts');
  const subscriptions: typeof storage = {
    ...storage,
    async begin(fence) {
      const effect = await storage.begin(fence);
      return {
        ...effect,
        async commit(settlement) {
          const result = await effect.commit(settlement);
          commits += 1;
          if (commits === 2) throw new MillraceError('STORE_UNAVAILABLE', 'cut off');
          return result;
        },
      };
    },
  };
  await using runner = await startSubscription({ ...db, subscriptions }, each, { clock });
  await until(clock, () => table.length === 3);
  await runner.whenCaughtUp();
  assert.deepEqual(table, ['a1', 'a2', 'a3']);
  assert.equal(commits, 4);
});

test('a claimed external effect is not repeated after a reset', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1);
  const sent: string[] = [];
  const each = subscription({
    name,
    async handler(_event, { claim, idempotencyKey }) {
      if (await claim()) sent.push(idempotencyKey);
    },
  });
  {
    await using runner = await startSubscription(db, each, { clock });
    await until(clock, () => sent.length === 1);
    await runner.whenCaughtUp();
    await runner.reset();
    await until(clock, async () => (await runner.lag()).behind === 0);
  }
  const [event] = await db.store.readAll().toArray();
  assert.deepEqual(sent, [`core|banking|test|${event?.eventId}`]);
});

test('a batch handler receives several events at once, and only the failing event is dead-lettered', async () => {
  const { db, clock, append } = createRig();
  const batches: string[][] = [];
  const seen: string[] = [];
  for (let number = 1; number <= 30; number += 1) await append(`s${number % 3}-`, number);
  const each = subscription({
    name,
    lanes: 1,
    batchSize: 10,
    batchHandler(events) {
      const labels = events.map(labelOf);
      batches.push(labels);
      if (labels.includes('s1-7')) throw new Terminal('poison');
      seen.push(...labels);
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  await until(clock, () => seen.length === 29);
  await runner.whenCaughtUp();
  assert.ok(batches.some((batch) => batch.length > 1));
  assert.deepEqual(
    batches.findLast((batch) => batch.includes('s1-7')),
    ['s1-7'],
  );
  for (const stream of ['s0-', 's1-', 's2-']) {
    const order = seen
      .filter((label) => label.startsWith(stream))
      .map((label) => Number(label.slice(3)));
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  }
  assert.equal(await db.subscriptions.deadLetters.count({}), 1);
});

test('a batch with one already processed event still applies the effects of the others', async () => {
  const { db, clock, append } = createRig();
  await append('a', 1, 2, 3);
  const storage = db.subscriptions;
  const table: string[] = [];
  const each = subscription<MemoryTransaction>({
    name,
    lanes: 1,
    batchSize: 10,
    async batchHandler(events, { transaction }) {
      const { onCommit } = await transaction();
      for (const event of events) onCommit(() => void table.push(labelOf(event)));
    },
  });
  // Another owner processed the first event, and this process did not load its mark.
  let isMarked = false;
  const subscriptions: typeof storage = {
    ...storage,
    async begin(fence) {
      const [first] = await db.store.readAll({ limit: 1 }).toArray();
      if (!isMarked && first !== undefined) {
        isMarked = true;
        await storage.settle(fence, { kind: 'delivered', positions: [first.position] });
      }
      return storage.begin(fence);
    },
  };
  await using runner = await startSubscription({ ...db, subscriptions }, each, { clock });
  await until(clock, () => table.length === 2);
  await runner.whenCaughtUp();
  assert.deepEqual(table, ['a2', 'a3']);
});

test('a paused subscription stops until it is resumed, and a reset restarts it', async () => {
  const { db, clock, append } = createRig();
  const seen: string[] = [];
  const each = subscription({ name, handler: (event) => void seen.push(labelOf(event)) });
  await using runner = await startSubscription(db, each, { clock });
  await append('a', 1);
  await until(clock, () => seen.length === 1);
  await runner.pause();
  await until(clock, () => runner.status.paused && runner.status.shards.length === 0);
  await append('a', 2);
  await clock.advance(60_000);
  assert.deepEqual(seen, ['a1']);
  assert.equal((await runner.lag()).seconds, 60);
  await runner.resume();
  await until(clock, () => seen.length === 2);
  await runner.reset();
  await until(clock, () => seen.length === 4);
  assert.deepEqual(seen, ['a1', 'a2', 'a1', 'a2']);
});

test('a process takes over from a dead owner when the lease expires', async () => {
  const { db, clock, append } = createRig();
  const seen: string[] = [];
  const each = subscription({ name, handler: (event) => void seen.push(labelOf(event)) });
  const storage = db.subscriptions;
  // A dead process leaves only its lease.
  await storage.checkpoints.open(name, 1);
  const dead = await storage.leases.acquire({ subscription: name, shard: 0 }, 'dead', 10_000);
  await storage.leases.announce(name, 'dead', 10_000);
  assert.equal(dead.kind, 'acquired');
  await append('a', 1);
  await using runner = await startSubscription(db, each, { clock, leaseMs: 10_000 });
  await clock.advance(9_900);
  assert.deepEqual(seen, []);
  await clock.advance(200);
  await until(clock, () => seen.length === 1);
  await assert.rejects(
    storage.checkpoints.save(
      { subscription: name, shard: 0, token: 1 },
      '0000000000000001' as never,
    ),
    (error) => hasCode(error, 'LEASE_LOST'),
  );
  void runner;
});

test('shards are rebalanced when processes start and stop', async () => {
  const { db, clock, append } = createRig();
  const seen: string[] = [];
  const each = subscription({
    name,
    shards: 4,
    handler: (event) => void seen.push(labelOf(event)),
  });
  await using first = await startSubscription(db, each, { clock, worker: 'first' });
  await until(clock, () => first.status.shards.length === 4);
  const second = await startSubscription(db, each, { clock, worker: 'second' });
  await until(clock, () => second.status.shards.length === 2 && first.status.shards.length === 2);
  for (let number = 1; number <= 40; number += 1) await append(`s${number}-`, number);
  await until(clock, () => seen.length === 40);
  await second.stop();
  await until(clock, () => first.status.shards.length === 4);
  await append('z', 1);
  await until(clock, () => seen.length === 41);
  assert.equal(new Set(seen).size, 41);
  await assert.rejects(startSubscription(db, { ...each, shards: 5 }, { clock }), (error) =>
    hasCode(error, 'SUBSCRIPTION_INVALID'),
  );
});

test('an invalid definition is rejected', () => {
  const handler = (): void => undefined;
  const bad = [
    { name },
    { name, handler, batchHandler: handler },
    { name, handler, lanes: 0 },
    { name, handler, shards: 1_000 },
  ];
  for (const each of bad) {
    assert.throws(
      () => subscription(each),
      (error) => hasCode(error, 'SUBSCRIPTION_INVALID'),
    );
  }
  assert.throws(
    () => subscription({ name: 'payments', handler }),
    (error) => hasCode(error, 'NAME_INVALID'),
  );
  assert.throws(
    () => subscription({ name, handler, from: 'now' as never }),
    (error) => hasCode(error, 'POSITION_INVALID'),
  );
});

test('start and stop in any order leave no lease', async () => {
  const { db } = createRig();
  const each = subscription({ name, handler: () => undefined });
  await stressLifecycle({
    rounds: 100,
    create: () => createSubscriptionRunner(db, each),
    async assertReleased() {
      const leases = await db.subscriptions.leases.list(name);
      assert.ok(leases.every(({ remainingMs }) => remainingMs <= 0));
    },
  });
});

test('an engine without checkpoints is rejected, and the error names the role', () => {
  const { store } = createRig().db;
  const each = subscription({ name, handler: () => undefined });
  for (const create of [
    () => createSubscriptionRunner({ store } as never, each),
    () => subscriptionAdmin({ store } as never),
  ]) {
    assert.throws(
      create,
      (error) => hasCode(error, 'NOT_SUPPORTED') && error.details['role'] === 'subscriptions',
    );
  }
});

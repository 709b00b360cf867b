import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { eventually } from '../../../testing/assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createTasks } from '../../../tasks/create-tasks.ts';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import { taskType } from '../../../tasks/task-type.ts';
import type { TaskEngine } from '../../../tasks/task-engine.ts';
import type { ClaimedTask, Tasks } from '../../../tasks/tasks.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openNats, type NatsOptions } from '../open-nats.ts';
import { openTaskBeat } from './beat.ts';

const server = await startNats();
after(() => server[Symbol.asyncDispose]());
const email = 'email-send';
const types = [
  taskType(email, { workers: 100 }),
  taskType('keyed', { concurrencyKey: 'account', concurrencyLimit: 2 }),
  taskType('limited', { rate: { count: 10, perMs: 3_600_000, isPerTenant: false } }),
];

async function openEngine(prefix: string, options: NatsOptions = {}): Promise<TaskEngine> {
  return ownedRole(await openNats(server.url, { ...options, prefix }), 'tasks');
}

async function open(prefix: string, options: NatsOptions = {}): Promise<Tasks> {
  return createTasks(await openEngine(prefix, options), { types, observer: options.observer });
}

const numbered = (count: number, type = email) =>
  Array.from({ length: count }, (_, n) => ({ type, payload: { n }, key: `k-${n}` }));

/** Retries until there is a reply, as a caller does. */
async function retryUntilReply<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'TASKS_UNAVAILABLE') || !error.retryable) throw error;
      await systemClock.sleep(20);
    }
  }
}

function claimUpTo(tasks: Tasks, worker: string, limit: number, type = email) {
  return tasks.claim({ worker, types: { [type]: limit }, waitMs: 0, leaseMs: 60_000 });
}

/** Claims and completes jobs until none is left. Repeats a request whose reply was lost. */
async function drain(tasks: Tasks, worker: string, done: (claimed: ClaimedTask) => void) {
  for (;;) {
    const claimed = await retryUntilReply(() => claimUpTo(tasks, worker, 20));
    for (const each of claimed) {
      try {
        await retryUntilReply(() => tasks.complete(each.token, worker));
      } catch (error) {
        // The first attempt completed the job, but its reply was lost.
        if (!hasCode(error, 'TASK_STALE')) throw error;
      }
      done(each);
    }
    if (claimed.length > 0) continue;
    const [count] = await retryUntilReply(() => tasks.counts());
    const { completed, ...others } = count?.states ?? { completed: 0 };
    if (completed > 0 && Object.values(others).every((each) => each === 0)) return;
    await systemClock.sleep(5);
  }
}

test('processes that race for the same jobs run each job once', async () => {
  const count = 300;
  const all = await Promise.all([0, 1, 2, 3].map(() => open('race')));
  try {
    const [first] = all;
    await first?.enqueueMany(numbered(count));
    const ran: string[] = [];
    const workers = new Set<string>();
    await Promise.all(
      all.map((tasks, n) =>
        drain(tasks, `w-${n}`, ({ task }) => {
          ran.push(task.id);
          workers.add(task.worker ?? '');
        }),
      ),
    );
    assert.equal(ran.length, count);
    assert.equal(new Set(ran).size, count);
    assert.equal(workers.size, 4);
  } finally {
    await Promise.all(all.map((tasks) => tasks[Symbol.asyncDispose]()));
  }
});

test('completes every job once and logs each outage once while the server is killed repeatedly', async () => {
  const reported: string[] = [];
  const report = (_: object, text: string): void => void reported.push(text);
  const observer = { log: { debug: report, info: report, warn: report, error: report } };
  const timesOf = (text: string): number => reported.filter((each) => each === text).length;
  const kills = 3;
  await using producer = await open('killed');
  await using first = await open('killed', { observer });
  await using second = await open('killed');
  const ends = new Map<string, number>();
  const count = 200;
  const ids = new Set<string>();
  let isDone = false;
  const killing = (async () => {
    for (let n = 0; n < kills; n += 1) {
      await eventually('some are done', async () => isDone || ends.size > (n + 1) * 40);
      // The other connection may be restored first and complete jobs before this one is restored.
      await eventually('it is connected', async () => timesOf('NATS connection restored') === n);
      await server.kill();
      await server.start();
    }
  })();
  const note = ({ task }: ClaimedTask): void => {
    ends.set(task.id, (ends.get(task.id) ?? 0) + 1);
  };
  const draining: Promise<void>[] = [];
  for (const task of numbered(count)) {
    ids.add((await retryUntilReply(() => producer.enqueue(task))).id);
    if (draining.length > 0) continue;
    draining.push(drainSome(first, 'w-1', note), drainSome(second, 'w-2', note));
  }
  async function drainSome(tasks: Tasks, worker: string, done: typeof note): Promise<void> {
    while (ends.size < count) {
      await drain(tasks, worker, done);
      await systemClock.sleep(1);
    }
  }
  await Promise.all(draining);
  isDone = true;
  await killing;
  assert.deepEqual(new Set(ends.keys()), ids);
  const counts = await retryUntilReply(() => first.counts());
  assert.equal(counts[0]?.states.completed, count);
  await eventually('it is connected', async () => timesOf('NATS connection restored') === kills);
  assert.equal(timesOf('NATS connection lost'), kills);
});

test('the next claim of a worker returns the jobs of a claim that failed after it took them', async () => {
  await using tasks = await open('unanswered');
  await using engine = await openEngine('unanswered');
  await tasks.enqueueMany(numbered(10));
  const nowMs = systemClock.now();
  const limits = { limit: 5, deadlineAfterMs: 60_000 };
  const rule = { type: email, ...limits, rate: undefined, keyLimit: undefined };
  const request = { worker: 'w', aliveUntilMs: nowMs + 60_000, rules: [rule], limit: 5, nowMs };
  const [first] = (await engine.changeAndClaim([], { ...request, limit: 1 }, nowMs)).claimed;
  assert.ok(first);
  const { id, type, fence } = first.head;
  // The server rejects a message of this size.
  const fields = { result: 'z'.repeat(2_000_000) };
  const change = { id, type, guard: { fence }, head: {}, fields, signals: [] };
  await assert.rejects(engine.changeAndClaim([change], request, nowMs));
  const claimed = await engine.changeAndClaim([], { ...request, limit: 9 }, nowMs);
  assert.equal(claimed.claimed.length, 5);
  const { tasks: running } = await tasks.list({ state: 'running' });
  const returned = [first, ...claimed.claimed].map(({ head }) => head.id);
  assert.deepEqual(running.map((task) => task.id).toSorted(), returned.toSorted());
});

test('heartbeats and syncs do not wake a waiting claim', async () => {
  await using engine = await openEngine('quiet');
  const waiting = new AbortController();
  const nowMs = Date.now();
  const limits = { limit: 1, deadlineAfterMs: 60_000, rate: undefined, keyLimit: undefined };
  const rules = [{ type: email, ...limits }];
  const claim = engine.claim(
    { worker: 'w', nowMs, aliveUntilMs: nowMs + 60_000, rules, limit: 1 },
    { waitMs: 60_000, signal: waiting.signal },
  );
  const aliveUntilMs = async () => (await engine.workers())[0]?.aliveUntilMs;
  // Each call writes a sync; a claim that it wakes renews its heartbeat.
  await eventually('the heartbeat stays the same', async () => {
    const before = await aliveUntilMs();
    for (let n = 0; n < 20; n += 1) await engine.counts();
    return before !== undefined && (await aliveUntilMs()) === before;
  });
  waiting.abort();
  await assert.rejects(claim, (error) => hasCode(error, 'ABORTED'));
});

test('a process that starts later sees all jobs, including those in a terminal state', async () => {
  await using before = await open('rebuilt');
  await before.enqueueMany(numbered(300));
  const claimed = await claimUpTo(before, 'w', 100);
  for (const { token } of claimed.slice(0, 50)) await before.complete(token);
  await before.pause('keyed');
  await using later = await open('rebuilt');
  assert.deepEqual(await later.counts(), await before.counts());
  assert.deepEqual(await later.modes(), { keyed: 'paused' });
  assert.equal((await later.list({ state: 'completed' }, { limit: 1_000 })).tasks.length, 50);
  assert.equal((await claimUpTo(later, 'w-2', 100)).length, 100);
});

test('a bucket that was lost with the disk is created again, and all processes see it empty', async () => {
  await using tasks = await open('wiped');
  await using other = await open('wiped');
  await tasks.enqueueMany(numbered(10));
  assert.equal((await other.counts())[0]?.states.queued, 10);
  await server.kill();
  await rm(join(server.folder, 'jetstream'), { recursive: true });
  await server.start();
  for (const each of [tasks, other]) {
    assert.deepEqual(await retryUntilReply(() => each.counts()), []);
  }
  await retryUntilReply(() => tasks.enqueue({ type: email, payload: 1 }));
  assert.equal((await retryUntilReply(() => claimUpTo(other, 'w', 10))).length, 1);
});

test('the sweeper rebuilds a deleted stream of the bus', async () => {
  await using nats = await openNats(server.url, { prefix: 'signals' });
  await using tasks = createTasks(nats.tasks, { types });
  const ids = (await tasks.enqueueMany(numbered(20))).map(({ id }) => id);
  for (const { token } of await claimUpTo(tasks, 'w', 5)) await tasks.complete(token);
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.delete('signals-bus');
  await connection.close();
  const sweep = createTaskSweep(tasks);
  await sweep.sweep();
  const taskIds: string[] = [];
  for (const kind of ['queue', 'terminal']) {
    for await (const { payload } of nats.bus.read(`gbe.tasks.${email}.${kind}`)) {
      taskIds.push((payload as { readonly taskId: string }).taskId);
    }
  }
  assert.deepEqual(taskIds.toSorted(), ids.toSorted());
  assert.equal((await sweep.sweep()).signals, 0);
});

test('concurrent changes are all applied or reported as stale', async () => {
  await using one = await open('cas');
  await using two = await open('cas');
  const { id } = await one.enqueue({ type: email, payload: null });
  await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      (n % 2 === 0 ? one : two).sendEvent(id, { name: 'e', payload: n, eventId: `id-${n}` }),
    ),
  );
  const [claimed] = await claimUpTo(one, 'w', 1);
  assert.ok(claimed);
  const seen = new Set<unknown>();
  for (let n = 0; n < 10; n += 1) {
    const result = await one.waitForEvent(claimed.token, { name: `w-${n}`, event: 'e' });
    seen.add(result.kind === 'event' ? result.payload : result);
  }
  assert.equal(seen.size, 10);
  const ends = await Promise.allSettled([
    one.complete(claimed.token, 1),
    two.complete(claimed.token, 2),
  ]);
  assert.deepEqual(ends.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
});

test('a concurrency key and a rate limit hold across all processes', async () => {
  const all = await Promise.all([0, 1, 2, 3].map(() => open('limits')));
  try {
    const [first] = all;
    await first?.enqueueMany(
      Array.from({ length: 60 }, (_, n) => ({ type: 'keyed', payload: { account: n % 3 } })),
    );
    await first?.enqueueMany(numbered(40, 'limited'));
    for (const type of ['keyed', 'limited']) {
      const claimed = await Promise.all(
        all.map((tasks, n) => claimUpTo(tasks, `w-${n}`, 40, type)),
      );
      const accounts = claimed
        .flat()
        .map(({ task }) => (task.payload as { readonly account?: number }).account);
      const most = type === 'keyed' ? 6 : 10;
      assert.ok(accounts.length <= most, `${accounts.length} of ${type}`);
      if (type === 'limited') continue;
      for (const account of [0, 1, 2]) {
        assert.ok(accounts.filter((each) => each === account).length <= 2);
      }
    }
  } finally {
    await Promise.all(all.map((tasks) => tasks[Symbol.asyncDispose]()));
  }
});

test('stores fields larger than a message, and removes them with their job', async () => {
  await using tasks = await open('large');
  const text = 'z'.repeat(200_000);
  const { id } = await tasks.enqueue({ type: email, payload: { text } });
  const [claimed] = await claimUpTo(tasks, 'w', 1);
  assert.ok(claimed);
  for (let n = 0; n < 8; n += 1) {
    await tasks.finishStep(claimed.token, { name: `s-${n}`, result: text });
  }
  const small = Array.from({ length: 300 }, (_, n) => n);
  for (const n of small) {
    await tasks.finishStep(claimed.token, { name: `t-${n}`, result: 'y'.repeat(500) });
  }
  await tasks.complete(claimed.token, text);
  const task = await tasks.get(id);
  assert.deepEqual(task?.payload, { text });
  assert.equal(task.result, text);
  assert.equal(task.steps.length, 308);
  assert.ok(task.steps.every(({ result }) => result === text || result === 'y'.repeat(500)));
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  const subjects = async (filter: string): Promise<number> => {
    const info = await manager.streams.info('KV_large-tasks', { subjects_filter: filter });
    return Object.keys(info.state.subjects ?? {}).length;
  };
  // Payload, result, eight steps, and the combined ones: no orphaned value.
  assert.ok((await subjects('$KV.large-tasks.value.>')) < 20);
  const engine = await openEngine('large');
  assert.equal(await engine.remove([{ id, type: email }]), 1);
  assert.equal(await subjects('$KV.large-tasks.value.>'), 0);
  const nowMs = systemClock.now();
  await engine.tidy(nowMs);
  await engine.tidy(nowMs + 3_600_000);
  assert.equal(await subjects('$KV.large-tasks.state.job.>'), 0);
  assert.deepEqual((await tasks.list()).tasks, []);
  await engine[Symbol.asyncDispose]();
  await connection.close();
});

test('a heartbeat thread reports that a worker is alive', async () => {
  await using tasks = await open('beat');
  const engine = await openEngine('beat');
  const { settings } = engine.beatThread ?? {};
  await engine[Symbol.asyncDispose]();
  await tasks.heartbeat({ worker: 'busy', leaseMs: 1_000, about: { host: 'h' } });
  await using beat = await openTaskBeat(settings);
  const aliveUntilMs = systemClock.now() + 86_400_000;
  await beat.beat({ worker: 'busy', aliveUntilMs });
  assert.deepEqual(await tasks.workers(), [
    { worker: 'busy', aliveUntil: new Date(aliveUntilMs), isAlive: true, about: { host: 'h' } },
  ]);
});

test('a call to a server that does not reply fails within the timeout', async () => {
  await using tasks = await open('silent', { timeoutMs: 300 });
  const { id } = await tasks.enqueue({ type: email, payload: 1 });
  server.pause();
  try {
    for (const call of [
      () => tasks.enqueue({ type: email, payload: 1 }),
      () => claimUpTo(tasks, 'w', 1, 'keyed'),
      () => tasks.get(id),
      () => tasks.counts(),
    ]) {
      await assert.rejects(call, (error) => hasCode(error, 'TASKS_UNAVAILABLE') && error.retryable);
    }
  } finally {
    server.resume();
  }
  assert.equal((await retryUntilReply(() => tasks.get(id)))?.state, 'queued');
});

test('a signal is published again after the server lost it and reused its sequence', async () => {
  await using own = await startNats();
  await using nats = await openNats(own.url, { prefix: 'tail' });
  await using tasks = createTasks(nats.tasks, { types });
  const { bus } = nats;
  const sweeper = createTaskSweep(tasks);
  const ids: string[] = [];
  const complete = async (n: number): Promise<void> => {
    const { id } = await retryUntilReply(() => tasks.enqueue({ type: email, payload: { n } }));
    ids.push(id);
    const [claimed] = await retryUntilReply(() => claimUpTo(tasks, 'w', 1));
    await retryUntilReply(() => tasks.complete(claimed?.token ?? assert.fail(), 'done'));
  };
  /** Stops the server, so that the copy of its files is consistent. */
  const restartWith = async (change: () => Promise<void>): Promise<void> => {
    await own.stop();
    await change();
    await own.start();
  };
  const streams = join(own.folder, 'jetstream', '$G', 'streams', 'tail-bus');
  const copy = join(own.folder, 'copy');
  await complete(1);
  await restartWith(() => cp(streams, copy, { recursive: true }));
  await complete(2);
  // The sweeper now knows both terminal signals.
  await retryUntilReply(() => sweeper.sweep());
  await restartWith(async () => {
    await rm(streams, { recursive: true });
    await cp(copy, streams, { recursive: true });
  });
  await complete(3);
  await eventually('every terminal signal is published', async () => {
    await retryUntilReply(() => sweeper.sweep());
    const found = await Array.fromAsync(bus.read(`gbe.tasks.${email}.terminal`));
    const published = new Set(found.map(({ payload }) => (payload as { taskId: string }).taskId));
    return ids.every((id) => published.has(id));
  });
});

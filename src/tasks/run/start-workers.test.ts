import { openMemory } from '../../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { RetryAfter, Terminal } from '../../foundation/handler-outcome.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createTasks } from '../create-tasks.ts';
import { startWorkers, type WorkersOptions } from './start-workers.ts';
import type { TaskEngine } from '../task-engine.ts';
import { task, type TaskContext, type TaskDefinition } from '../task-definition.ts';
import { createTaskSweep } from './task-sweeper.ts';
import { taskType } from '../task-type.ts';
import type { Tasks } from '../tasks.ts';

const quick = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
const types = [
  taskType('report-gen', { workers: 3, retries: 2, backoff: quick }),
  taskType('email-send', { workers: 5, retries: 0, backoff: quick }),
];

async function withWorkers(
  definitions: readonly TaskDefinition[],
  work: (tasks: Tasks) => Promise<void>,
  options: WorkersOptions = {},
): Promise<void> {
  await using tasks = createTasks(openMemory().tasks, { types });
  await using workers = startWorkers(tasks, definitions, { drainMs: 2_000, ...options });
  await work(tasks);
  await workers.stop();
}

test('a job runs through its steps, its sleep and its event, each step once', async () => {
  const ran: string[] = [];
  const reportGen = task('report-gen', async (ctx) => {
    const rows = await ctx.step('load', () => {
      ran.push('load');
      return [1, 2, 3];
    });
    await ctx.sleep(5);
    const approval = await ctx.waitForEvent<{ by: string }>('approved', { timeout: '1m' });
    const sum = await ctx.step('sum', () => {
      ran.push('sum');
      return rows.reduce((a, b) => a + b, 0);
    });
    return { sum, by: approval?.by };
  });
  await withWorkers([reportGen], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    for (;;) {
      const { waitsFor } = (await tasks.get(id)) ?? {};
      if (waitsFor?.kind === 'event') break;
      await new Promise(setImmediate);
    }
    await tasks.sendEvent(id, { name: 'approved', payload: { by: 'ada' } });
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.deepEqual(ended.result, { sum: 6, by: 'ada' });
    assert.deepEqual(ran, ['load', 'sum']);
  });
});

test('a failed attempt continues after its completed steps', async () => {
  const ran: string[] = [];
  const reportGen = task('report-gen', async (ctx) => {
    await ctx.step('charge', () => void ran.push('charge'));
    await ctx.step('send', () => {
      ran.push('send');
      if (ctx.attempt < 3) throw new Error('busy');
    });
    return ctx.attempt;
  });
  await withWorkers([reportGen], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    assert.equal((await tasks.whenEnded(id, { timeoutMs: 10_000 })).result, 3);
    assert.deepEqual(ran, ['charge', 'send', 'send', 'send']);
  });
});

test('a step is retried within the attempt, and its failure may be caught', async () => {
  let tries = 0;
  const reportGen = task('report-gen', async (ctx) => {
    try {
      await ctx.step(
        'flaky',
        () => {
          tries += 1;
          throw new RetryAfter(1);
        },
        { retries: 2 },
      );
    } catch (error) {
      return `${ctx.attempt}: ${(error as Error).message}`;
    }
    return 'not reached';
  });
  await withWorkers([reportGen], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    assert.equal((await tasks.whenEnded(id, { timeoutMs: 10_000 })).result, '1: try again in 1 ms');
    assert.equal(tries, 3);
  });
});

test('steps with the same name, and concurrent steps, are separate steps', async () => {
  const reportGen = task('report-gen', async (ctx) => {
    const sums: number[] = [];
    for (const n of [1, 2, 3]) sums.push(await ctx.step('each', () => n * 10));
    const both = await Promise.all([ctx.step('a', () => 1), ctx.step('b', () => 2)]);
    await ctx.sleep(1);
    return [...sums, ...both];
  });
  await withWorkers([reportGen], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.deepEqual(ended.result, [10, 20, 30, 1, 2]);
    assert.deepEqual(
      ended.steps.map(({ name }) => name),
      ['each', 'each#2', 'each#3', 'a', 'b', 'sleep'],
    );
  });
});

test('children run concurrently, and a failed child is reported', async () => {
  const emailSend = task('email-send', async (ctx) => {
    const { n } = ctx.payload as { n: number };
    if (n === 2) throw new Terminal('no such address');
    return n * n;
  });
  const reportGen = task('report-gen', async (ctx) => {
    const all = await ctx.all([1, 2, 3].map((n) => ({ type: 'email-send', payload: { n } })));
    const single = await ctx.run<number>({ type: 'email-send', payload: { n: 5 } });
    await assert.rejects(ctx.run({ type: 'email-send', payload: { n: 2 } }, { name: 'bad' }), {
      code: 'TASK_CHILD_FAILED',
    });
    return [all.map(({ state, result }) => result ?? state), single];
  });
  await withWorkers([reportGen, emailSend], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.deepEqual(ended.result, [[1, 'failed', 9], 25]);
  });
});

test('compensations run in reverse order when the job fails permanently', async () => {
  const ran: string[] = [];
  const booking = task('email-send', async (ctx) => {
    await ctx.step('flight', () => 'f-1', { compensate: (id) => void ran.push(`undo ${id}`) });
    await ctx.step('hotel', () => 'h-1', { compensate: (id) => void ran.push(`undo ${id}`) });
    await ctx.step('car', () => {
      throw new Error('none left');
    });
  });
  await withWorkers([booking], async (tasks) => {
    const { id } = await tasks.enqueue(booking.job(null));
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.equal(ended.state, 'failed');
    assert.equal(ended.error?.message, 'none left');
    assert.deepEqual(ran, ['undo h-1', 'undo f-1']);
  });
});

test('cancelling a job fires the signal of its running handler', async () => {
  const begun = Promise.withResolvers<void>();
  const emailSend = task('email-send', async (ctx) => {
    await ctx.step('wait', ({ signal }) => {
      begun.resolve();
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
  });
  await withWorkers(
    [emailSend],
    async (tasks) => {
      const { id } = await tasks.enqueue(emailSend.job(null));
      await begun.promise;
      await tasks.cancel(id);
      assert.equal((await tasks.whenEnded(id, { timeoutMs: 10_000 })).state, 'cancelled');
    },
    { leaseMs: 300 },
  );
});

test('a step that exceeds its time limit fails', async () => {
  const emailSend = task('email-send', async (ctx) => {
    await ctx.step('hang', () => new Promise(() => undefined), { timeout: '20ms' });
  });
  await withWorkers([emailSend], async (tasks) => {
    const { id } = await tasks.enqueue(emailSend.job(null));
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.equal(ended.error?.code, 'TASK_STEP_TIMEOUT');
  });
});

test('an invalid payload fails the job permanently, and is rejected by job()', async () => {
  const emailSend = task('email-send', z.object({ to: z.string() }), async (ctx) => ctx.payload.to);
  assert.throws(() => emailSend.job({} as { to: string }), { code: 'PAYLOAD_INVALID' });
  await withWorkers([emailSend as unknown as TaskDefinition], async (tasks) => {
    const { id } = await tasks.enqueue({ type: 'email-send', payload: { to: 1 } });
    const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.equal(ended.error?.code, 'PAYLOAD_INVALID');
    const good = await tasks.enqueue(emailSend.job({ to: 'c-1' }));
    assert.equal((await tasks.whenEnded(good.id, { timeoutMs: 10_000 })).result, 'c-1');
  });
});

test('limits concurrent jobs to the workers of the type', async () => {
  let now = 0;
  let most = 0;
  const emailSend = task('email-send', async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise(setImmediate);
    now -= 1;
  });
  await withWorkers([emailSend], async (tasks) => {
    const jobs = Array.from({ length: 60 }, () => emailSend.job(null));
    const ids = await tasks.enqueueMany(jobs);
    for (const { id } of ids) await tasks.whenEnded(id, { timeoutMs: 10_000 });
    assert.equal(most, 5);
  });
});

test('jobs whose outcomes are being stored leave room for others, within the limit of running jobs', async () => {
  const engine = openMemory().tasks;
  const most = { calls: 0, running: 0 };
  let calls = 0;
  let running = 0;
  /** While a call runs, another one may start. */
  const changeAndClaim: typeof engine.changeAndClaim = async (...args) => {
    calls += 1;
    most.calls = Math.max(most.calls, calls);
    for (let turnsLeft = 3; turnsLeft > 0; turnsLeft -= 1) await new Promise(setImmediate);
    calls -= 1;
    return engine.changeAndClaim(...args);
  };
  await using tasks = createTasks({ ...engine, callsAtOnce: 2, changeAndClaim }, { types });
  const emailSend = task('email-send', async () => {
    running += 1;
    most.running = Math.max(most.running, running);
    await new Promise(setImmediate);
    running -= 1;
  });
  const jobs = await tasks.enqueueMany(Array.from({ length: 60 }, () => emailSend.job(null)));
  await using workers = startWorkers(tasks, [emailSend], { drainMs: 2_000 });
  for (const { id } of jobs) await tasks.whenEnded(id, { timeoutMs: 10_000 });
  await workers.stop();
  assert.ok(most.calls <= 2, String(most.calls));
  assert.ok(most.running <= 5, String(most.running));
  assert.equal((await tasks.counts())[0]?.states.completed, 60);
});

test('jobs of a claim run while the next claim is on its way', async () => {
  const engine = openMemory().tasks;
  const runningAtClaim: number[] = [];
  let running = 0;
  const claim: typeof engine.claim = (...args) => {
    runningAtClaim.push(running);
    return engine.claim(...args);
  };
  await using tasks = createTasks({ ...engine, claim }, { types });
  const allRun = Promise.withResolvers<void>();
  const emailSend = task('email-send', async () => {
    running += 1;
    if (running === 5) allRun.resolve();
    await allRun.promise;
  });
  const jobs = await tasks.enqueueMany(Array.from({ length: 5 }, () => emailSend.job(null)));
  await using workers = startWorkers(tasks, [emailSend], { drainMs: 2_000 });
  for (const { id } of jobs) await tasks.whenEnded(id, { timeoutMs: 10_000 });
  await workers.stop();
  assert.deepEqual(runningAtClaim.slice(0, 2), [0, 3]);
});

test('stopping workers releases jobs that do not end in time, and another worker continues', async () => {
  await using tasks = createTasks(openMemory().tasks, { types });
  const begun = Promise.withResolvers<void>();
  let isFirst = true;
  const emailSend = task('email-send', async (ctx) => {
    await ctx.step('first', () => 1);
    if (!isFirst) return 'done';
    isFirst = false;
    begun.resolve();
    return new Promise(() => undefined);
  });
  const { id } = await tasks.enqueue(emailSend.job(null));
  const workers = startWorkers(tasks, [emailSend], { drainMs: 10 });
  await begun.promise;
  await workers.stop();
  assert.equal((await tasks.get(id))?.state, 'queued');
  assert.deepEqual(await tasks.workers(), []);
  await using next = startWorkers(tasks, [emailSend], { drainMs: 10 });
  assert.equal((await tasks.whenEnded(id, { timeoutMs: 10_000 })).result, 'done');
  assert.notEqual(next.worker, workers.worker);
});

test('the control channel stops a worker, and changes its concurrency', async () => {
  await using tasks = createTasks(openMemory().tasks, { types });
  const messages = [
    { subject: 'gbe.tasks._control.rebalance', payload: { concurrency: { 'email-send': 0 } } },
    { subject: 'gbe.tasks._control.shutdown', payload: { worker: 'another' } },
    { subject: 'gbe.tasks._control.shutdown', payload: {} },
  ];
  const emailSend = task('email-send', async () => undefined);
  const workers = startWorkers(tasks, [emailSend], {
    drainMs: 10,
    async control(pattern) {
      assert.equal(pattern, 'gbe.tasks._control.>');
      return (async function* () {
        yield* messages;
      })();
    },
  });
  await workers.done;
  assert.deepEqual(await tasks.workers(), []);
});

test('a job that another worker has taken stops, and its late calls are rejected', async () => {
  await using tasks = createTasks(openMemory().tasks, { types });
  const begun = Promise.withResolvers<void>();
  const stoppedBy = Promise.withResolvers<unknown>();
  const emailSend = task('email-send', async (ctx) => {
    ctx.signal.addEventListener('abort', () => stoppedBy.resolve(ctx.signal.reason));
    begun.resolve();
    return new Promise(() => undefined);
  });
  const { id } = await tasks.enqueue(emailSend.job(null));
  await using workers = startWorkers(tasks, [emailSend], { drainMs: 1, leaseMs: 300 });
  await begun.promise;
  // The next claim, which also says that the worker is alive, comes before the worker leaves.
  await new Promise(setImmediate);
  await tasks.leave(workers.worker);
  await createTaskSweep(tasks).sweep();
  const reason = (await stoppedBy.promise) as { readonly code: string };
  assert.equal(reason.code, 'TASK_STALE');
  assert.equal((await tasks.get(id))?.state, 'failed');
});

test('a worker that was considered dead runs the job again, despite a late heartbeat reply about its first claim', async () => {
  const engine = openMemory().tasks;
  const requested = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const replied = Promise.withResolvers<void>();
  const heads: typeof engine.heads = async (refs) => {
    const [head] = await engine.heads(refs);
    if (head?.state !== 'waiting') return engine.heads(refs);
    // The reply that the job is lost arrives when the same worker holds the job again.
    requested.resolve();
    await late.promise;
    setImmediate(replied.resolve);
    return [head];
  };
  await using tasks = createTasks({ ...engine, heads }, { types });
  const begun = Promise.withResolvers<void>();
  const blocked = Promise.withResolvers<void>();
  const reportGen = task('report-gen', async (ctx) => {
    begun.resolve();
    if (ctx.attempt === 1) await blocked.promise;
    else {
      late.resolve();
      await replied.promise;
    }
    return ctx.attempt;
  });
  const { id } = await tasks.enqueue(reportGen.job(null));
  await using workers = startWorkers(tasks, [reportGen], {
    drainMs: 1,
    leaseMs: 300,
    concurrency: { 'report-gen': 1 },
  });
  await begun.promise;
  await tasks.leave(workers.worker);
  await createTaskSweep(tasks).sweep();
  await requested.promise;
  blocked.resolve();
  const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
  assert.deepEqual([ended.state, ended.result, ended.fence], ['completed', 2, 2]);
});

test('a wait inside of a step throws a typed error immediately, without a retry', async () => {
  const emailSend = task('email-send', async () => 'child');
  const waits: Readonly<Record<string, (ctx: TaskContext) => Promise<unknown>>> = {
    'ctx.sleep': (ctx) => ctx.sleep('1h'),
    'ctx.waitForEvent': (ctx) => ctx.waitForEvent('approved'),
    'ctx.run': (ctx) => ctx.run({ type: 'email-send', payload: null }),
    'ctx.all': (ctx) => ctx.all([{ type: 'email-send', payload: null }]),
  };
  for (const [what, wait] of Object.entries(waits)) {
    const reportGen = task('report-gen', async (ctx) => {
      await ctx.step('load', async () => {
        // Also in a later turn of the event loop.
        await Promise.resolve();
        await wait(ctx);
      });
    });
    await withWorkers([reportGen, emailSend], async (tasks) => {
      const { id } = await tasks.enqueue(reportGen.job(null));
      const ended = await tasks.whenEnded(id, { timeoutMs: 10_000 });
      assert.deepEqual(
        [ended.state, ended.error?.code, ended.failures],
        ['failed', 'TASK_INVALID', 1],
      );
      assert.ok(ended.error?.message.startsWith(`${what} was called inside of step load`));
      assert.equal((await tasks.list()).tasks.length, 1);
    });
  }
});

test('a wait concurrent to a step is not inside of the step', async () => {
  const reportGen = task('report-gen', async (ctx) => {
    const [n] = await Promise.all([ctx.step('load', async () => 7), ctx.sleep(1)]);
    return n;
  });
  await withWorkers([reportGen], async (tasks) => {
    const { id } = await tasks.enqueue(reportGen.job(null));
    assert.equal((await tasks.whenEnded(id, { timeoutMs: 10_000 })).result, 7);
  });
});

test('a worker whose lease expired before it started a job does not repeat a completed step', async () => {
  const clock = fakeClock({ nowMs: 1_000_000 });
  const engine = openMemory({ clock }).tasks;
  const frozen = Promise.withResolvers<void>();
  const claimed = Promise.withResolvers<void>();
  // A process that is frozen after its claim: the claim returns late, and no heartbeat is sent.
  const slowEngine: TaskEngine = {
    ...engine,
    async claim(...args) {
      const found = await engine.claim(...args);
      if (found.length > 0) claimed.resolve();
      await frozen.promise;
      return found;
    },
    async beat(beat) {
      await frozen.promise;
      return engine.beat(beat);
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  await using tasks = createTasks(engine, { clock, types });
  await using slowTasks = createTasks(slowEngine, { clock, types });
  const ran: string[] = [];
  const definition = (worker: string) =>
    task('report-gen', async (ctx) => {
      await ctx.step('charge', () => void ran.push(worker));
      return worker;
    });
  const options = { leaseMs: 1_000, drainMs: 1, beatsFromThread: false };
  const { id } = await tasks.enqueue({ type: 'report-gen', payload: null });
  const slow = startWorkers(slowTasks, [definition('slow')], options);
  await claimed.promise;
  await clock.advance(1_001);
  await createTaskSweep(tasks).sweep();
  const other = startWorkers(tasks, [definition('other')], options);
  const ended = tasks.whenEnded(id, { timeoutMs: 60_000 });
  await clock.advance(500);
  assert.equal((await ended).result, 'other');
  frozen.resolve();
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(ran, ['other']);
  await Promise.all([slow.stop(), other.stop(), clock.advance(1_000)]);
});

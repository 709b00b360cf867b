// The sweeper: dead workers, hanging steps and lost signals.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { taskTypeOf } from '../../../tasks/task-job.ts';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import { taskType } from '../../../tasks/task-type.ts';
import {
  caseTypes,
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  fieldOf,
  nothingIn,
  report,
  secondOf,
  stateOf,
  type TasksCases,
} from './fixture.ts';

const shortLeaseMs = 10_000;

export const sweepCases: TasksCases = {
  async 'requeues a job whose worker died, and its former holder changes nothing'(
    tasks,
    { clock, opened },
  ) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const [dead] = await claimSome(tasks, 1, { worker: 'dead', leaseMs: shortLeaseMs });
    if (dead === undefined) assert.fail('missing');
    await tasks.finishStep(dead.token, { name: 'load', result: 1 });
    await clock.advance(shortLeaseMs - 1);
    assert.equal((await sweep()).lost, 0);
    await clock.advance(1);
    assert.equal((await sweep()).lost, 1);
    const { token, task } = await claimOne(tasks);
    assert.equal(task.failures, 1);
    assert.equal(task.error?.code, 'TASK_WORKER_LOST');
    assert.equal(task.steps[0]?.result, 1);
    await rejectsWith(() => tasks.complete(dead.token), 'TASK_STALE');
    await tasks.complete(token);
    const published = await opened.stream('gbe.tasks._control.sweep');
    assert.ok(published.some(({ payload }) => fieldOf(payload, 'lost') === 1));
  },

  async 'a worker with heartbeats keeps its jobs'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const [claimed] = await claimSome(tasks, 1, { worker: 'alive', leaseMs: shortLeaseMs });
    if (claimed === undefined) assert.fail('missing');
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(shortLeaseMs - 1);
      await tasks.heartbeat({ worker: 'alive', leaseMs: shortLeaseMs });
      assert.equal((await sweep()).lost, 0);
    }
    await tasks.complete(claimed.token);
  },

  async 'requeues the jobs of a deregistered worker at once'(tasks) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    await claimOne(tasks, email, 'leaving');
    await tasks.leave('leaving');
    assert.equal((await sweep()).lost, 1);
    await claimOne(tasks);
  },

  async 'stores a completion and the claim in the same call, even if the worker dies afterwards'(
    tasks,
  ) {
    const { sweep } = createTaskSweep(tasks);
    const ids = await enqueueNumbers(tasks, 2);
    const first = await claimOne(tasks, email, 'dying');
    // One call completes a job and claims the next; the worker dies before it starts that job.
    const [, given] = await Promise.all([
      tasks.complete(first.token, 'done'),
      claimSome(tasks, 1, { worker: 'dying' }),
    ]);
    assert.equal(given.length, 1);
    await tasks.leave('dying');
    assert.equal((await sweep()).lost, 1);
    const { token, task } = await claimOne(tasks);
    assert.deepEqual([task.id, task.fence, task.failures], [given[0]?.task.id, 2, 1]);
    await tasks.complete(token);
    const states = await Promise.all(ids.map((id) => stateOf(tasks, id)));
    assert.deepEqual(states, ['completed', 'completed']);
    assert.equal((await tasks.get(first.token.id))?.result, 'done');
  },

  async 'rejects a late completion, and the claim in the same call may return the same job'(tasks) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const lost = await claimOne(tasks, email, 'slow');
    await tasks.leave('slow');
    assert.equal((await sweep()).lost, 1);
    const [, [again]] = await Promise.all([
      rejectsWith(() => tasks.complete(lost.token, 'late'), 'TASK_STALE'),
      claimSome(tasks, 1, { worker: 'slow' }),
    ]);
    assert.deepEqual([again?.token.id, again?.token.fence], [lost.token.id, 2]);
    if (again === undefined) assert.fail('missing');
    // The late completion of the first claim does not affect the second claim.
    const beats = await tasks.heartbeat({ worker: 'slow', tokens: [lost.token, again.token] });
    assert.deepEqual(
      beats.map(({ state }) => state),
      ['lost', 'claimed'],
    );
    await tasks.complete(again.token, 'again');
    assert.equal((await tasks.get(lost.token.id))?.result, 'again');
  },

  async 'requeues a job whose step hangs, although its worker is alive'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.startStep(token, { name: 'quick', timeoutMs: 1_000 });
    await clock.advance(5_999);
    assert.equal((await sweep()).lost, 0);
    await clock.advance(1);
    assert.equal((await sweep()).lost, 1);
    assert.equal((await tasks.get(token.id))?.error?.code, 'TASK_STEP_TIMEOUT');
  },

  async 'progress extends the deadline of a step'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    for (let percent = 0; percent < 100; percent += 20) {
      await clock.advance(30_000);
      await tasks.progress(token, { percent });
      assert.equal((await sweep()).lost, 0);
    }
  },

  async 'a lost job fails if its policy says so'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    const { id } = await tasks.enqueue({ type: 'brittle', payload: null });
    await claimSome(tasks, 1, { types: { brittle: 1 }, worker: 'dead', leaseMs: shortLeaseMs });
    await clock.advance(shortLeaseMs);
    await sweep();
    assert.equal(await stateOf(tasks, id), 'failed');
  },

  async 'an ignored cancellation is forced after its deadline'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.cancel(token.id, { deadlineMs: 3_000, reason: 'order withdrawn' });
    await clock.advance(2_999);
    assert.equal((await sweep()).lost, 0);
    await clock.advance(1);
    assert.equal((await sweep()).lost, 1);
    assert.equal(await stateOf(tasks, token.id), 'cancelled');
    assert.equal((await tasks.get(token.id))?.error?.message, 'order withdrawn');
    await rejectsWith(() => tasks.complete(token), 'TASK_STALE');
  },

  async 'a job that loses its workers too often fails'(tasks, { clock }) {
    const { sweep } = createTaskSweep(tasks);
    const [id = ''] = await enqueueNumbers(tasks, 1);
    for (let n = 0; n < 3; n += 1) {
      await claimSome(tasks, 1, { worker: `dead-${n}`, leaseMs: shortLeaseMs });
      await clock.advance(shortLeaseMs);
      await sweep();
    }
    assert.equal(await stateOf(tasks, id), 'failed');
  },

  async 'a job that becomes due is queued, with a signal'(tasks, { clock, opened }) {
    const { sweep } = createTaskSweep(tasks);
    const { id } = await tasks.enqueue({ type: email, payload: { n: 0 }, delayMs: 1_000 });
    await clock.advance(1_000);
    assert.equal((await sweep()).due, 1);
    assert.equal(await stateOf(tasks, id), 'queued');
    assert.equal((await opened.stream('gbe.tasks.email-send.queue')).length, 1);
    await claimOne(tasks);
  },

  async 'publishes the signals of deleted streams again'(tasks, { opened }) {
    const { sweep } = createTaskSweep(tasks);
    const ids = await enqueueNumbers(tasks, 150);
    const claimed = await claimSome(tasks, 30);
    await Promise.all(claimed.slice(0, 10).map(({ token }) => tasks.complete(token)));
    const [running] = claimed.slice(10);
    if (running === undefined) assert.fail('missing');
    await tasks.finishStep(running.token, { name: 'load' });
    for (const stream of ['queue', 'progress', 'terminal']) {
      await opened.deleteStream(`gbe.tasks.email-send.${stream}`);
    }
    await enqueueNumbers(tasks, 1);
    let repaired = 0;
    for (let n = 0; n < 5; n += 1) repaired += (await sweep()).signals;
    assert.equal(repaired, 120 + 10 + 1);
    const queued = await opened.stream('gbe.tasks.email-send.queue');
    const published = new Set(queued.map(({ payload }) => fieldOf(payload, 'taskId')));
    for (const id of ids.slice(30)) assert.ok(published.has(id), id);
    assert.equal((await opened.stream('gbe.tasks.email-send.terminal')).length, 10);
    assert.equal((await opened.stream('gbe.tasks.email-send.progress')).length, 1);
    assert.equal((await sweep()).signals, 0);
  },

  async 'wakes a parent whose last child reached a terminal state without a wake-up'(
    tasks,
    { opened, clock },
  ) {
    const { sweep } = createTaskSweep(tasks);
    await tasks.enqueue({ type: report, payload: null });
    const parent = await claimOne(tasks, report);
    await tasks.runChildren(parent.token, {
      name: 'c',
      tasks: [{ type: email, payload: { n: 0 } }],
    });
    const child = await claimOne(tasks);
    // Simulates a process that is killed right after it stored the terminal state.
    const { engine } = tasks.core;
    await engine.changeAndClaim(
      [
        {
          id: child.task.id,
          type: taskTypeOf(child.task.id),
          guard: { fence: child.token.fence },
          head: { state: 'completed', endedAtMs: clock.now() },
          fields: {},
          signals: [],
        },
      ],
      undefined,
      clock.now(),
    );
    await nothingIn(tasks, report);
    assert.equal((await sweep()).woken, 1);
    await claimOne(tasks, report);
    assert.ok(opened);
  },

  async 'removes jobs in a terminal state after their retention, and keeps the others'(
    tasks,
    { clock },
  ) {
    tasks.setTypes([taskType(email, { retentionMs: 60_000 }), ...caseTypes.slice(1)]);
    const { sweep } = createTaskSweep(tasks);
    const ids = await enqueueNumbers(tasks, 3);
    await tasks.complete((await claimOne(tasks)).token);
    await clock.advance(30_000);
    await tasks.complete((await claimOne(tasks)).token);
    await clock.advance(30_001);
    assert.equal((await sweep()).removed, 1);
    const states = await Promise.all(ids.map((id) => stateOf(tasks, id)));
    assert.deepEqual(states, [undefined, 'completed', 'queued']);
  },

  async 'a cron tick creates one job, with any number of sweepers'(tasks, context) {
    const { clock, capabilities } = context;
    const cron = {
      expression: '* * * * *',
      timeZone: 'UTC',
      payload: { tick: 1 },
      tenant: undefined,
    };
    const types = [taskType('nightly', { cron, dedupeWindowMs: 1 })];
    tasks.setTypes(types);
    await using second = capabilities.crossProcess ? await secondOf(context) : undefined;
    second?.setTypes(types);
    const sweeps = [tasks, second ?? tasks].map((each) => createTaskSweep(each));
    for (let n = 0; n < 6; n += 1) {
      await Promise.all(sweeps.map(({ sweep }) => sweep()));
      await clock.advance(30_000);
    }
    // Three minutes with a tick at the start and at the end create one job per tick.
    const { tasks: jobs } = await tasks.list({ type: 'nightly' });
    const due = jobs.map(({ dueAt }) => dueAt?.getTime());
    assert.equal(new Set(due).size, jobs.length);
    assert.ok(jobs.length >= 3 && jobs.length <= 5, `${jobs.length}`);
    const claimed = await claimSome(tasks, 10, { types: { nightly: 10 } });
    assert.deepEqual(claimed[0]?.task.payload, { tick: 1 });
  },

  async 'two sweepers requeue a lost job once'(tasks, context) {
    const { clock, capabilities } = context;
    await using second = capabilities.crossProcess ? await secondOf(context) : undefined;
    await enqueueNumbers(tasks, 20);
    await claimSome(tasks, 20, { worker: 'dead', leaseMs: shortLeaseMs });
    await clock.advance(shortLeaseMs);
    const sweeps = [tasks, second ?? tasks].map((each) => createTaskSweep(each));
    const swept = await Promise.all(sweeps.map(({ sweep }) => sweep()));
    assert.equal(
      swept.reduce((sum, { lost }) => sum + lost, 0),
      20,
    );
    const claimed = await claimSome(tasks, 100);
    assert.deepEqual(new Set(claimed.map(({ task }) => task.failures)), new Set([1]));
  },
};

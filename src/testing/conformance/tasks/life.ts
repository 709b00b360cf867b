// The life cycle of a job, and calls with an outdated fence token.

import assert from 'node:assert/strict';
import { failureCause } from '../../../foundation/failure-cause.ts';
import { rejectsWith } from '../../assertions.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  fieldOf,
  longLeaseMs,
  nothingIn,
  report,
  stateOf,
  type TasksCases,
} from './fixture.ts';

const boom = {
  message: 'the gateway is busy',
  name: 'GatewayError',
  code: 'BUSY',
  stack: '    at send (/app/mail.ts:1:2)',
};

export const lifeCases: TasksCases = {
  async 'a claimed job is running, with its worker and a fence token'(tasks, { clock }) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    await clock.advance(40);
    const { token, task } = await claimOne(tasks);
    assert.deepEqual(token, { id, fence: 1 });
    assert.equal(task.state, 'running');
    assert.equal(task.worker, 'worker-1');
    assert.equal(task.claimedAt?.getTime(), clock.now());
    assert.deepEqual(task.payload, { n: 0 });
    await nothingIn(tasks);
  },

  async 'a completed job has its result, and publishes a terminal signal'(
    tasks,
    { opened, clock },
  ) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await clock.advance(10);
    await tasks.complete(token, { sent: 3 });
    const task = (await tasks.get(id)) ?? assert.fail('missing');
    assert.equal(task.state, 'completed');
    assert.deepEqual(task.result, { sent: 3 });
    assert.equal(task.worker, undefined);
    assert.equal(task.endedAt?.getTime(), clock.now());
    assert.deepEqual(
      task.history.map(({ what }) => what),
      ['enqueued', 'claimed', 'completed'],
    );
    const signals = await opened.stream('gbe.tasks.email-send.terminal');
    assert.deepEqual(
      signals.map(({ payload }) => [fieldOf(payload, 'taskId'), fieldOf(payload, 'state')]),
      [[id, 'completed']],
    );
    await nothingIn(tasks);
  },

  async 'retries a failed attempt after its backoff, and the job fails after the last attempt'(
    tasks,
    { clock, opened },
  ) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    for (const [at, waitMs] of [1_000, 2_000].entries()) {
      const { token, task } = await claimOne(tasks);
      assert.equal(task.attempt, at + 1);
      await tasks.fail(token, boom);
      assert.equal(await stateOf(tasks, id), 'waiting');
      await clock.advance(waitMs - 1);
      await nothingIn(tasks);
      await clock.advance(1);
    }
    await tasks.fail((await claimOne(tasks)).token, boom);
    const task = (await tasks.get(id)) ?? assert.fail('missing');
    assert.equal(task.state, 'failed');
    assert.equal(task.failures, 3);
    const failure = { source: 'job', where: email, error: boom.message };
    const { fingerprint } = failureCause(failure, boom);
    assert.deepEqual(task.error, { ...boom, fingerprint });
    assert.equal((await opened.stream('gbe.tasks.email-send.terminal')).length, 1);
    await clock.advance(3_600_000);
    await nothingIn(tasks);
  },

  async 'a permanent failure fails the job at once'(tasks) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    await tasks.fail((await claimOne(tasks)).token, { ...boom, isTerminal: true });
    assert.equal(await stateOf(tasks, id), 'failed');
  },

  async 'a failure can set the time of its retry'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    await tasks.fail((await claimOne(tasks)).token, boom, { retryAfterMs: 25_000 });
    await clock.advance(24_999);
    await nothingIn(tasks);
    await clock.advance(1);
    await claimOne(tasks);
  },

  async 'a released job is claimable immediately, without a failure'(tasks) {
    await enqueueNumbers(tasks, 1);
    await tasks.release((await claimOne(tasks)).token);
    const { token, task } = await claimOne(tasks);
    assert.equal(task.failures, 0);
    assert.equal(token.fence, 2);
  },

  async 'a call with an older fence changes nothing, and is rejected'(tasks) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    const { token: old } = await claimOne(tasks, email, 'late');
    await tasks.release(old);
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'load', result: 'new' });
    for (const work of [
      () => tasks.complete(old, 'old'),
      () => tasks.fail(old, boom),
      () => tasks.startStep(old, { name: 'load' }),
      () => tasks.finishStep(old, { name: 'load', result: 'old' }),
      () => tasks.progress(old, { percent: 99 }),
      () => tasks.sleep(old, { name: 'nap', until: new Date(0) }),
      () => tasks.waitForEvent(old, { name: 'w', event: 'e' }),
      () => tasks.cancelled(old),
      () => tasks.release(old),
    ]) {
      await rejectsWith(work, 'TASK_STALE');
    }
    const task = await tasks.get(id);
    assert.equal(task?.state, 'running');
    assert.equal(task.steps[0]?.result, 'new');
    await tasks.complete(token, 'new');
    assert.equal((await tasks.get(id))?.result, 'new');
  },

  async 'a job reaches a terminal state once'(tasks, { opened }) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const ends = await Promise.allSettled([
      tasks.complete(token, 1),
      tasks.complete(token, 2),
      tasks.fail(token, { message: 'no', isTerminal: true }),
    ]);
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await tasks.get(id))?.result, 1);
    assert.equal((await opened.stream('gbe.tasks.email-send.terminal')).length, 1);
  },

  async 'claims and completes many jobs at once'(tasks) {
    await enqueueNumbers(tasks, 100);
    const claimed = await claimSome(tasks, 100);
    assert.equal(claimed.length, 100);
    await Promise.all(claimed.map(({ token }, n) => tasks.complete(token, n)));
    const [count] = await tasks.counts();
    assert.equal(count?.states.completed, 100);
  },

  async 'two claims never get the same job'(tasks) {
    await enqueueNumbers(tasks, 60);
    const both = await Promise.all([
      claimSome(tasks, 40, { worker: 'a' }),
      claimSome(tasks, 40, { worker: 'b' }),
    ]);
    const ids = both.flat().map(({ task }) => task.id);
    assert.equal(ids.length, 60);
    assert.equal(new Set(ids).size, 60);
  },

  async 'progress is stored and published'(tasks, { opened }) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.progress(token, { percent: 40, message: 'half of it' });
    assert.deepEqual((await tasks.get(id))?.progress, { percent: 40, message: 'half of it' });
    const signals = await opened.stream('gbe.tasks.email-send.progress');
    const last = signals.at(-1)?.payload;
    assert.deepEqual([fieldOf(last, 'kind'), fieldOf(last, 'percent')], ['progress', 40]);
    await rejectsWith(() => tasks.progress(token, { percent: 101 }), 'TASK_INVALID');
  },

  async 'a claim takes only the types that it names, in turns'(tasks) {
    await enqueueNumbers(tasks, 10);
    await enqueueNumbers(tasks, 10, { type: report });
    const only = await claimSome(tasks, 3, { types: { [report]: 3 } });
    assert.deepEqual(new Set(only.map(({ task }) => task.type)), new Set([report]));
    const both = await claimSome(tasks, 4, { types: { [email]: 10, [report]: 10 }, limit: 4 });
    assert.deepEqual(new Set(both.map(({ task }) => task.type)), new Set([email, report]));
    const rest = await claimSome(tasks, 20, { types: { [email]: 100, [report]: 1 }, limit: 20 });
    assert.equal(rest.filter(({ task }) => task.type === report).length, 1);
    assert.equal(rest.filter(({ task }) => task.type === email).length, 8);
  },

  async 'a heartbeat returns claimed, lost and cancelled jobs'(tasks, { clock }) {
    const ids = await enqueueNumbers(tasks, 3);
    const claimed = await claimSome(tasks, 3);
    const tokens = claimed.map(({ token }) => token);
    const [first, second] = tokens;
    if (first === undefined || second === undefined) assert.fail('missing');
    await tasks.complete(first);
    await tasks.cancel(second.id, { deadlineMs: 5_000 });
    const states = await tasks.heartbeat({ worker: 'worker-1', leaseMs: longLeaseMs, tokens });
    assert.deepEqual(states, [
      { id: ids[0], state: 'lost', cancelAt: undefined },
      { id: ids[1], state: 'claimed', cancelAt: new Date(clock.now() + 5_000) },
      { id: ids[2], state: 'claimed', cancelAt: undefined },
    ]);
  },

  async 'workers register and deregister'(tasks, { clock }) {
    await tasks.heartbeat({ worker: 'w-a', leaseMs: 1_000, about: { host: 'h' } });
    await tasks.heartbeat({ worker: 'w-b', leaseMs: 60_000 });
    await clock.advance(2_000);
    const workers = await tasks.workers();
    const seen = workers.map((each) => [each.worker, each.isAlive, each.about] as const);
    assert.deepEqual(
      seen.toSorted(([a], [b]) => (a < b ? -1 : 1)),
      [
        ['w-a', false, { host: 'h' }],
        ['w-b', true, undefined],
      ],
    );
    await tasks.leave('w-a');
    assert.deepEqual(
      (await tasks.workers()).map((each) => each.worker),
      ['w-b'],
    );
  },
};

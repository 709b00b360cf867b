// Cancel, retry, compensation, lists and bulk actions.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  report,
  stateOf,
  type TasksCases,
} from './fixture.ts';

export const cancelCases: TasksCases = {
  async 'cancels a queued job at once'(tasks, { opened }) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    assert.equal(await tasks.cancel(id, { reason: 'not needed' }), true);
    const task = await tasks.get(id);
    assert.equal(task?.state, 'cancelled');
    assert.equal(task.error?.message, 'not needed');
    await nothingIn(tasks);
    assert.equal((await opened.stream('gbe.tasks.email-send.terminal')).length, 1);
  },

  async 'cancels a sleeping job and one that waits for an event at once'(tasks, { clock }) {
    await enqueueNumbers(tasks, 2);
    const [one, other] = await claimSome(tasks, 2);
    if (one === undefined || other === undefined) assert.fail('missing');
    await tasks.sleep(one.token, { name: 'nap', until: new Date(clock.now() + 1_000) });
    await tasks.waitForEvent(other.token, { name: 'w', event: 'e', timeoutMs: 1_000 });
    for (const { token } of [one, other]) {
      assert.equal(await tasks.cancel(token.id), true);
      assert.equal(await stateOf(tasks, token.id), 'cancelled');
    }
    await clock.advance(10_000);
    await nothingIn(tasks);
  },

  async 'cancelling a running job notifies its worker, which reports when it has stopped'(
    tasks,
    { clock },
  ) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    assert.equal(await tasks.cancel(token.id, { deadlineMs: 9_000 }), true);
    const task = await tasks.get(token.id);
    assert.equal(task?.state, 'running');
    assert.equal(task.cancelAt?.getTime(), clock.now() + 9_000);
    assert.equal(await tasks.cancel(token.id), false);
    await tasks.cancelled(token);
    assert.equal(await stateOf(tasks, token.id), 'cancelled');
  },

  async 'a running job that is cancelled ends with the reason of its cancellation'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'load', result: 1 });
    await tasks.cancel(token.id, { reason: 'order withdrawn' });
    await tasks.finishStep(token, { name: 'render', result: 2 });
    const requested = (await tasks.timeline(token.id)).find(
      ({ what }) => what === 'cancel requested',
    );
    assert.equal(requested?.text, 'order withdrawn');
    await tasks.cancelled(token);
    const task = await tasks.get(token.id);
    assert.deepEqual(task?.error, { message: 'order withdrawn', code: 'TASK_CANCELLED' });
    assert.deepEqual(
      task.history.slice(-3).map(({ what, text }) => [what, text]),
      [
        ['claimed', undefined],
        ['cancel requested', 'order withdrawn'],
        ['cancelled', 'order withdrawn'],
      ],
    );
    assert.equal(await tasks.retry(token.id), true);
    const again = await claimOne(tasks);
    assert.equal(again.task.cancelAt, undefined);
    await tasks.cancel(token.id);
    await tasks.cancelled(again.token);
    assert.equal((await tasks.get(token.id))?.error?.message, 'cancelled');
  },

  async "a cancellation and an event survive later writes of the job's holder"(tasks, { clock }) {
    await enqueueNumbers(tasks, 1, { labels: { campaign: 'spring' }, tenant: 'acme' });
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'load', result: 1 });
    const cancelAtMs = clock.now() + 9_000;
    assert.equal(await tasks.cancel(token.id, { deadlineMs: 9_000 }), true);
    await Promise.all([
      tasks.startStep(token, { name: 'render' }),
      tasks.finishStep(token, { name: 'render', result: 2 }),
      tasks.progress(token, { percent: 50 }),
    ]);
    await tasks.sendEvent(token.id, { name: 'approved', payload: 'by ada' });
    await tasks.finishStep(token, { name: 'send', result: 3 });
    const task = await tasks.get(token.id);
    assert.equal(task?.cancelAt?.getTime(), cancelAtMs);
    assert.deepEqual(
      task.steps.map(({ name, state, result }) => [name, state, result]),
      [
        ['load', 'completed', 1],
        ['render', 'completed', 2],
        ['send', 'completed', 3],
      ],
    );
    assert.deepEqual(
      [task.progress?.percent, task.labels, task.tenant],
      [50, { campaign: 'spring' }, 'acme'],
    );
    const waited = await tasks.waitForEvent(token, { name: 'w', event: 'approved' });
    assert.deepEqual(waited, { kind: 'event', payload: 'by ada' });
    await tasks.cancelled(token);
    assert.equal(await stateOf(tasks, token.id), 'cancelled');
  },

  async 'a job that finishes before it sees its cancellation is completed'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.cancel(token.id);
    await tasks.complete(token, 'done');
    assert.equal(await stateOf(tasks, token.id), 'completed');
    assert.equal(await tasks.cancel(token.id), false);
  },

  async 'a worker runs the compensations before the job reaches its terminal state'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'charge', result: 'p-1', isCompensable: true });
    await tasks.cancel(token.id);
    await tasks.cancelled(token);
    assert.equal(await stateOf(tasks, token.id), 'queued');
    const again = await claimOne(tasks);
    assert.equal(again.task.endsAs, 'cancelled');
    await tasks.finishStep(again.token, { name: 'undo:charge', kind: 'compensation' });
    await tasks.compensated(again.token);
    const task = await tasks.get(token.id);
    assert.equal(task?.state, 'cancelled');
    assert.equal(task.endsAs, undefined);
  },

  async 'a permanently failed job runs its compensations, too'(tasks) {
    await tasks.enqueue({ type: report, payload: null });
    const { token } = await claimOne(tasks, report);
    await tasks.finishStep(token, { name: 'book', isCompensable: true });
    await tasks.fail(token, { message: 'no room' });
    const again = await claimOne(tasks, report);
    assert.equal(again.task.endsAs, 'failed');
    await tasks.finishStep(again.token, { name: 'undo:book', kind: 'compensation' });
    await tasks.compensated(again.token);
    const task = await tasks.get(token.id);
    assert.equal(task?.state, 'failed');
    assert.equal(task.error?.message, 'no room');
  },

  async 'rejects cancelling an unknown job or an invalid id'(tasks) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    const missing = id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    await rejectsWith(() => tasks.cancel(missing), 'TASK_UNKNOWN');
    for (const bad of ['', 'email-send', 'email-send.x', `${id}\n`, '../etc']) {
      await rejectsWith(() => tasks.get(bad), 'TASK_INVALID');
    }
  },
};

export const retryCases: TasksCases = {
  async 'a retry of a failed job does not repeat its completed steps'(tasks, { opened }) {
    await tasks.enqueue({ type: report, payload: null });
    const { token } = await claimOne(tasks, report);
    await tasks.finishStep(token, { name: 'load', result: 1 });
    await tasks.startStep(token, { name: 'send' });
    await tasks.failStep(token, { name: 'send', failure: { message: 'no' } });
    await tasks.fail(token, { message: 'no' });
    assert.equal(await tasks.retry(token.id), true);
    const again = await claimOne(tasks, report);
    assert.equal(again.task.failures, 0);
    assert.equal(again.task.error, undefined);
    assert.deepEqual(
      again.task.steps.map(({ name }) => name),
      ['load'],
    );
    await tasks.complete(again.token);
    assert.equal((await opened.stream('gbe.tasks.report-gen.terminal')).length, 2);
  },

  async 'a retry from a step runs that step and later ones again'(tasks) {
    await tasks.enqueue({ type: report, payload: null });
    const { token } = await claimOne(tasks, report);
    for (const name of ['a', 'b', 'c']) await tasks.finishStep(token, { name, result: name });
    await tasks.complete(token);
    assert.equal(await tasks.retry(token.id, { fromStep: 'b' }), true);
    const again = await claimOne(tasks, report);
    assert.deepEqual(
      again.task.steps.map(({ name }) => name),
      ['a'],
    );
  },

  async 'rejects the retry of a job that is not in a terminal state'(tasks) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    assert.equal(await tasks.retry(id), false);
    await claimOne(tasks);
    assert.equal(await tasks.retry(id), false);
  },

  async 'a retried job publishes a new terminal signal, even if no worker claimed it again'(
    tasks,
    { opened },
  ) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    await tasks.cancel(id);
    await tasks.retry(id);
    await tasks.cancel(id);
    assert.equal((await opened.stream('gbe.tasks.email-send.terminal')).length, 2);
  },

  async 'the holder from before a retry changes nothing'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.complete(token);
    await tasks.retry(token.id);
    await rejectsWith(() => tasks.complete(token), 'TASK_STALE');
    const again = await claimOne(tasks);
    await rejectsWith(() => tasks.complete(token), 'TASK_STALE');
    await tasks.complete(again.token);
  },
};

export const adminCases: TasksCases = {
  async 'jobs are listed newest first, page by page'(tasks, { clock }) {
    const ids: string[] = [];
    for (let n = 0; n < 25; n += 1) {
      ids.push(...(await enqueueNumbers(tasks, 1)));
      if (n % 3 === 0) await clock.advance(1);
    }
    const seen: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await tasks.list({}, { cursor, limit: 10 });
      seen.push(...page.tasks.map(({ id }) => id));
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    assert.deepEqual(seen, ids.toReversed());
  },

  async 'a page of jobs ends with the job that reaches its maximum of bytes'(tasks, { clock }) {
    const ids: string[] = [];
    for (const type of [email, report, email, report, email, report, email]) {
      const { id } = await tasks.enqueue({ type, payload: null });
      ids.push(id);
      const { token } = await claimOne(tasks, type);
      await tasks.complete(token, 'x'.repeat(1_000));
      await clock.advance(1);
    }
    const seen: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await tasks.list({}, { cursor, limit: 100, bytesMax: 1_500 });
      assert.ok(page.tasks.length <= 2, `${page.tasks.length} jobs with a result of 1 KB`);
      seen.push(...page.tasks.map(({ id }) => id));
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    assert.deepEqual(seen, ids.toReversed());
  },

  async 'lists jobs by type, state, tenant, label and time'(tasks, { clock }) {
    const beforeMs = clock.now();
    await tasks.enqueue({ type: email, payload: 1, tenant: 'a', labels: { region: 'eu' } });
    await tasks.enqueue({ type: report, payload: 2, tenant: 'a', labels: { region: 'us' } });
    await clock.advance(1_000);
    await tasks.enqueue({
      type: email,
      payload: 3,
      tenant: 'b',
      labels: { region: 'eu', plan: 'pro' },
    });
    await claimOne(tasks, report);
    const payloads = async (query: Parameters<typeof tasks.list>[0]): Promise<unknown[]> =>
      (await tasks.list(query)).tasks.map(({ payload }) => payload);
    const full = async (query: Parameters<typeof tasks.list>[0]): Promise<string[]> =>
      (await tasks.list(query)).tasks.map(({ type, tenant = '' }) => `${type}/${tenant}`);
    assert.deepEqual(await full({ type: email }), ['email-send/b', 'email-send/a']);
    assert.deepEqual(await full({ state: 'running' }), ['report-gen/a']);
    assert.equal((await payloads({ state: ['running', 'queued'] })).length, 3);
    assert.deepEqual(await full({ tenant: 'b' }), ['email-send/b']);
    assert.equal((await payloads({ labels: { region: 'eu' } })).length, 2);
    assert.equal((await payloads({ labels: { region: 'eu', plan: 'pro' } })).length, 1);
    assert.equal((await payloads({ labels: { region: 'e' } })).length, 0);
    assert.equal((await payloads({ enqueuedFrom: new Date(beforeMs + 1) })).length, 1);
    assert.equal((await payloads({ enqueuedBefore: new Date(beforeMs + 1) })).length, 2);
    assert.equal((await payloads({ updatedFrom: new Date(clock.now()) })).length, 2);
  },

  async 'rejects an invalid cursor'(tasks) {
    await rejectsWith(() => tasks.list({}, { cursor: 'nonsense' }), 'TASK_INVALID');
    await rejectsWith(() => tasks.list({}, { limit: 0 }), 'TASK_INVALID');
  },

  async 'counts jobs by type and state'(tasks) {
    await enqueueNumbers(tasks, 3);
    await tasks.enqueue({ type: report, payload: 1, delayMs: 1_000 });
    await tasks.complete((await claimOne(tasks)).token);
    await claimOne(tasks);
    const counts = Object.fromEntries(
      (await tasks.counts()).map((each) => [each.type, each.states]),
    );
    const none = { scheduled: 0, queued: 0, waiting: 0, running: 0 };
    const ends = { completed: 0, failed: 0, cancelled: 0 };
    assert.deepEqual(counts, {
      [email]: { ...none, ...ends, queued: 1, running: 1, completed: 1 },
      [report]: { ...none, ...ends, scheduled: 1 },
    });
  },

  async 'a timeline contains the whole history, in order'(tasks, { clock }) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    await clock.advance(10);
    const { token } = await claimOne(tasks);
    await clock.advance(10);
    await tasks.startStep(token, { name: 'load' });
    await clock.advance(10);
    await tasks.finishStep(token, { name: 'load' });
    await clock.advance(10);
    await tasks.complete(token);
    const timeline = await tasks.timeline(id);
    assert.deepEqual(
      timeline.map(({ what, step }) => (step === undefined ? what : `${what} ${step}`)),
      ['enqueued', 'claimed', 'step started load', 'step completed load', 'completed'],
    );
  },

  async 'limits the length of a history'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    let id = '';
    for (let n = 0; n < 60; n += 1) {
      const { token } = await claimOne(tasks);
      id = token.id;
      await tasks.sleep(token, { name: `nap-${n}`, until: new Date(clock.now() + 1) });
      await clock.advance(1);
    }
    const task = (await tasks.get(id)) ?? assert.fail('missing');
    assert.ok(task.history.length <= 50);
    assert.equal(task.history[0]?.what, 'enqueued');
  },

  async 'cancels and retries all matching jobs'(tasks) {
    await enqueueNumbers(tasks, 120, { labels: { batch: 'b1' } });
    await enqueueNumbers(tasks, 5);
    assert.deepEqual(await tasks.cancelMany({ labels: { batch: 'b1' } }), {
      changed: 120,
      skipped: 0,
    });
    assert.equal((await tasks.list({ state: 'queued' })).tasks.length, 5);
    const retried = await tasks.retryMany({ state: 'cancelled' });
    assert.equal(retried.changed, 120);
  },

  async 'waiting for a job returns the job in its terminal state'(tasks) {
    const [id = ''] = await enqueueNumbers(tasks, 1);
    await rejectsWith(() => tasks.whenEnded(id, { timeoutMs: 0 }), 'TASK_TIMEOUT');
    await tasks.complete((await claimOne(tasks)).token, 7);
    assert.equal((await tasks.whenEnded(id)).result, 7);
  },

  async 'types can change at runtime'(tasks) {
    const before = tasks.types();
    await enqueueNumbers(tasks, 2);
    const [first] = before;
    if (first === undefined) assert.fail('missing');
    tasks.setTypes([{ ...first, retries: 0 }]);
    await rejectsWith(() => enqueueNumbers(tasks, 1, { type: report }), 'TASK_TYPE_UNKNOWN');
    const { token } = await claimOne(tasks);
    await tasks.fail(token, { message: 'no' });
    assert.equal(await stateOf(tasks, token.id), 'failed');
    tasks.setTypes(before);
    await enqueueNumbers(tasks, 1, { type: report });
  },

  async 'rejects calls after closing'(tasks) {
    await tasks[Symbol.asyncDispose]();
    await rejectsWith(() => enqueueNumbers(tasks, 1), 'TASKS_CLOSED');
    await rejectsWith(() => claimOne(tasks), 'TASKS_CLOSED');
  },
};

// Durable steps; sleeps, events and children free the worker and resume the job later.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  numbersOf,
  report,
  stateOf,
  type TasksCases,
} from './fixture.ts';

const boom = { message: 'no luck' };

export const stepCases: TasksCases = {
  async 'the next holder of a job sees its completed steps'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.startStep(token, { name: 'load' });
    await clock.advance(70);
    await tasks.finishStep(token, { name: 'load', result: [1, { two: null }] });
    await tasks.release(token);
    const { task } = await claimOne(tasks);
    const [step] = task.steps;
    assert.equal(step?.name, 'load');
    assert.equal(step.state, 'completed');
    assert.deepEqual(step.result, [1, { two: null }]);
    assert.equal((step.endedAt?.getTime() ?? 0) - step.startedAt.getTime(), 70);
  },

  async 'returns steps in the order of their start'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    for (const name of ['c', 'a', 'b']) {
      await tasks.startStep(token, { name });
      await tasks.finishStep(token, { name, result: name });
    }
    const task = await tasks.get(token.id);
    assert.deepEqual(
      task?.steps.map(({ name }) => name),
      ['c', 'a', 'b'],
    );
  },

  async 'stores all concurrent steps'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const names = Array.from({ length: 30 }, (_, n) => `s${n}`);
    await Promise.all(names.map((name) => tasks.startStep(token, { name })));
    await Promise.all(names.map((name) => tasks.finishStep(token, { name, result: name })));
    const task = await tasks.get(token.id);
    assert.deepEqual(
      task?.steps.map(({ result }) => result),
      names,
    );
  },

  async 'steps publish signals on the progress stream'(tasks, { opened }) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.startStep(token, { name: 'load' });
    await tasks.finishStep(token, { name: 'load' });
    await tasks.startStep(token, { name: 'send' });
    await tasks.failStep(token, { name: 'send', failure: boom });
    const signals = await opened.stream('gbe.tasks.email-send.progress');
    assert.deepEqual(
      signals.map(({ payload }) => {
        const { kind, step } = payload as { kind: string; step: string };
        return `${step} ${kind}`;
      }),
      ['load step-started', 'load step-completed', 'send step-started', 'send step-failed'],
    );
  },

  async 'a failed step with attempts left frees the worker until the next attempt'(
    tasks,
    { clock },
  ) {
    await enqueueNumbers(tasks, 1);
    for (const attempt of [1, 2]) {
      const { token } = await claimOne(tasks);
      await tasks.startStep(token, { name: 'send' });
      const { isRetried } = await tasks.failStep(token, {
        name: 'send',
        failure: boom,
        retries: 2,
      });
      assert.equal(isRetried, true);
      const task = await tasks.get(token.id);
      assert.equal(task?.state, 'waiting');
      assert.equal(task.failures, 0);
      assert.equal(task.steps[0]?.attempts, attempt);
      await clock.advance(60_000);
    }
    const { token } = await claimOne(tasks);
    await tasks.startStep(token, { name: 'send' });
    const last = await tasks.failStep(token, { name: 'send', failure: boom, retries: 2 });
    assert.equal(last.isRetried, false);
    assert.equal(await stateOf(tasks, token.id), 'running');
  },

  async 'validates the names and results of steps'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await rejectsWith(() => tasks.startStep(token, { name: 'two words' }), 'TASK_INVALID');
    const large = 'x'.repeat(taskLimits.valueBytesMax);
    await rejectsWith(
      () => tasks.finishStep(token, { name: 'load', result: large }),
      'PAYLOAD_TOO_LARGE',
    );
    await rejectsWith(
      () => tasks.finishStep(token, { name: 'load', result: () => 1 }),
      'PAYLOAD_NOT_JSON',
    );
    assert.equal(await stateOf(tasks, token.id), 'running');
  },

  async 'a sleeping job is due after its sleep'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.sleep(token, { name: 'nap', until: new Date(clock.now() + 3_600_000) });
    const asleep = await tasks.get(token.id);
    assert.equal(asleep?.state, 'waiting');
    assert.equal(asleep.worker, undefined);
    assert.equal(asleep.waitsFor?.kind, 'sleep');
    await clock.advance(3_599_999);
    await nothingIn(tasks);
    await clock.advance(1);
    const { task } = await claimOne(tasks);
    assert.equal(task.failures, 0);
    assert.equal(task.steps[0]?.name, 'nap');
  },

  async 'a repeated sleep keeps the first wake-up time'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    const nap = { name: 'nap', until: new Date(clock.now() + 60_000) };
    const first = await claimOne(tasks);
    assert.deepEqual(await tasks.sleep(first.token, nap), { kind: 'released' });
    await tasks.sendEvent(first.token.id, { name: 'approved' });
    await nothingIn(tasks);
    await clock.advance(60_000);
    const second = await claimOne(tasks);
    const again = { name: 'nap', until: new Date(clock.now() + 60_000) };
    assert.deepEqual(await tasks.sleep(second.token, again), { kind: 'over' });
    await tasks.complete(second.token);
    assert.equal(await stateOf(tasks, first.token.id), 'completed');
  },

  async 'an event wakes a job that waits for it'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const wait = { name: 'approval', event: 'approved' };
    assert.deepEqual(await tasks.waitForEvent(token, wait), { kind: 'released' });
    await nothingIn(tasks);
    assert.equal(await tasks.sendEvent(token.id, { name: 'rejected' }), true);
    await nothingIn(tasks);
    assert.equal(
      await tasks.sendEvent(token.id, { name: 'approved', payload: { by: 'ada' } }),
      true,
    );
    const again = await claimOne(tasks);
    assert.deepEqual(await tasks.waitForEvent(again.token, wait), {
      kind: 'event',
      payload: { by: 'ada' },
    });
    const task = await tasks.get(token.id);
    assert.equal(task?.steps[0]?.state, 'completed');
  },

  async 'an event sent before the wait is not missed, and is consumed once'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.sendEvent(token.id, { name: 'paid', payload: 1 });
    await tasks.sendEvent(token.id, { name: 'paid', payload: 2 });
    const first = await tasks.waitForEvent(token, { name: 'w1', event: 'paid' });
    const second = await tasks.waitForEvent(token, { name: 'w2', event: 'paid' });
    const payloads = [first, second].map((each) => (each.kind === 'event' ? each.payload : each));
    assert.deepEqual(new Set(payloads), new Set([1, 2]));
    const third = await tasks.waitForEvent(token, { name: 'w3', event: 'paid' });
    assert.deepEqual(third, { kind: 'released' });
  },

  async 'an event sent twice with one id counts once'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const event = { name: 'paid', payload: 1, eventId: 'e-1' };
    await tasks.sendEvent(token.id, event);
    await tasks.sendEvent(token.id, event);
    await tasks.waitForEvent(token, { name: 'w1', event: 'paid' });
    assert.deepEqual(await tasks.waitForEvent(token, { name: 'w2', event: 'paid' }), {
      kind: 'released',
    });
  },

  async 'a wait for an event times out'(tasks, { clock }) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const wait = { name: 'approval', event: 'approved', timeoutMs: 5_000 };
    await tasks.waitForEvent(token, wait);
    await clock.advance(5_000);
    const again = await claimOne(tasks);
    assert.deepEqual(await tasks.waitForEvent(again.token, wait), { kind: 'timeout' });
  },

  async 'rejects an event for a job in a terminal state'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.complete(token);
    assert.equal(await tasks.sendEvent(token.id, { name: 'late' }), false);
    const missing = token.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    await rejectsWith(() => tasks.sendEvent(missing, { name: 'late' }), 'TASK_UNKNOWN');
  },

  async 'events that race with the wait for them are never lost'(tasks) {
    for (let run = 0; run < 20; run += 1) {
      await enqueueNumbers(tasks, 1);
      const { token } = await claimOne(tasks);
      const wait = { name: 'w', event: 'go' };
      const [outcome] = await Promise.all([
        tasks.waitForEvent(token, wait),
        tasks.sendEvent(token.id, { name: 'go' }),
      ]);
      if (outcome.kind === 'released') {
        const again = await claimOne(tasks);
        assert.equal((await tasks.waitForEvent(again.token, wait)).kind, 'event');
        await tasks.complete(again.token);
      } else {
        await tasks.complete(token);
      }
    }
  },

  async 'a parent sleeps until all of its children are in a terminal state'(tasks) {
    const { id } = await tasks.enqueue({ type: report, payload: null, tenant: 'acme' });
    const { token } = await claimOne(tasks, report);
    const children = {
      name: 'fan-out',
      tasks: [0, 1, 2].map((n) => ({ type: email, payload: { n } })),
    };
    assert.deepEqual(await tasks.runChildren(token, children), { kind: 'released' });
    const claimed = await claimSome(tasks, 10);
    assert.equal(claimed.length, 3);
    assert.deepEqual(new Set(claimed.map(({ task }) => task.tenant)), new Set(['acme']));
    assert.deepEqual(new Set(claimed.map(({ task }) => task.parentId)), new Set([id]));
    for (const child of claimed) {
      await nothingIn(tasks, report);
      const [n] = numbersOf([child]);
      if (n === 1) await tasks.fail(child.token, { message: 'no', isTerminal: true });
      else await tasks.complete(child.token, n);
    }
    const again = await claimOne(tasks, report);
    const outcome = await tasks.runChildren(again.token, children);
    if (outcome.kind !== 'ended') assert.fail('the children have not ended');
    assert.deepEqual(
      outcome.children.map(({ state, result }) => [state, result]),
      [
        ['completed', 0],
        ['failed', undefined],
        ['completed', 2],
      ],
    );
    assert.equal((await tasks.list({ parentId: id })).tasks.length, 3);
  },

  async 'enqueues children once, however often their parent is resumed'(tasks) {
    await tasks.enqueue({ type: report, payload: null });
    const { token } = await claimOne(tasks, report);
    const children = { name: 'c', tasks: [{ type: email, payload: { n: 1 } }] };
    await tasks.runChildren(token, children);
    await tasks.complete((await claimOne(tasks)).token, 'done');
    const again = await claimOne(tasks, report);
    await tasks.release(again.token);
    const third = await claimOne(tasks, report);
    assert.equal((await tasks.runChildren(third.token, children)).kind, 'ended');
    await nothingIn(tasks);
  },

  async 'waiting for no children returns at once'(tasks) {
    await tasks.enqueue({ type: report, payload: null });
    const { token } = await claimOne(tasks, report);
    const outcome = await tasks.runChildren(token, { name: 'none', tasks: [] });
    assert.deepEqual(outcome, { kind: 'ended', children: [] });
  },
};

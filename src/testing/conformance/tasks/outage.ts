// An outage of the engine: which calls fail, which are safe to retry, and which work resumes by itself.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { Logger, Observer } from '../../../foundation/observer.ts';
import { startWorkers } from '../../../tasks/run/start-workers.ts';
import { task } from '../../../tasks/task-definition.ts';
import { startTaskSweeper } from '../../../tasks/run/task-sweeper.ts';
import {
  caseTypes,
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  type OpenedTasks,
  type TasksCases,
} from './fixture.ts';

async function away(opened: OpenedTasks): Promise<() => Promise<void>> {
  return (await opened.outage?.()) ?? assert.fail('the fixture has no outage');
}

async function isUnavailable(work: () => Promise<unknown>): Promise<void> {
  assert.equal((await rejectsWith(work, 'TASKS_UNAVAILABLE')).retryable, true);
}

/** The logged messages, in order. */
function listener(): { readonly observer: Observer; readonly count: (message: string) => number } {
  const messages: string[] = [];
  const take = (_fields: object, message: string): void => void messages.push(message);
  const log: Logger = { debug: () => undefined, info: take, warn: take, error: take };
  return {
    observer: { log },
    count: (message) => messages.filter((each) => each === message).length,
  };
}

export const outageCases: TasksCases = {
  async 'an enqueue during an outage fails, and retrying it creates one job'(tasks, { opened }) {
    const job = { type: email, payload: { n: 1 }, key: 'welcome' };
    const back = await away(opened);
    await isUnavailable(() => tasks.enqueue(job));
    await isUnavailable(() => tasks.enqueueMany([job, { ...job, key: 'bye' }]));
    await back();
    await tasks.enqueueMany([job, { ...job, key: 'bye' }]);
    assert.equal((await tasks.enqueue(job)).isDuplicate, true);
    assert.equal((await tasks.list()).tasks.length, 2);
    assert.equal((await claimSome(tasks, 10)).length, 2);
  },

  async 'a claim during an outage fails and leaves no job claimed without a worker'(
    tasks,
    { opened },
  ) {
    await enqueueNumbers(tasks, 3);
    const back = await away(opened);
    await isUnavailable(() => claimSome(tasks, 2));
    await back();
    assert.equal((await claimSome(tasks, 10)).length, 3);
    await nothingIn(tasks);
  },

  async 'a step and a completion fail during an outage, and retrying them applies them once'(
    tasks,
    { opened },
  ) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.finishStep(token, { name: 'load', result: 1 });
    const back = await away(opened);
    await isUnavailable(() => tasks.finishStep(token, { name: 'send', result: 2 }));
    await isUnavailable(() => tasks.complete(token, 'done'));
    await back();
    await tasks.finishStep(token, { name: 'send', result: 2 });
    await tasks.complete(token, 'done');
    const ended = await tasks.get(token.id);
    assert.deepEqual([ended?.state, ended?.result, ended?.attempt], ['completed', 'done', 1]);
    assert.deepEqual(
      ended?.steps.map(({ name, result }) => [name, result]),
      [
        ['load', 1],
        ['send', 2],
      ],
    );
    let ends = 0;
    await eventually('the bus of the tasks is available, too', async () => {
      try {
        ends = (await opened.stream(`gbe.tasks.${email}.terminal`)).length;
        return true;
      } catch (error) {
        if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
        return false;
      }
    });
    assert.equal(ends, 1);
    await nothingIn(tasks);
  },

  async 'a failure and a cancellation during an outage fail, and succeed when retried'(
    tasks,
    { opened },
  ) {
    await enqueueNumbers(tasks, 2);
    const [first, second] = await claimSome(tasks, 2);
    if (first === undefined || second === undefined) assert.fail('missing');
    await tasks.release(second.token);
    const back = await away(opened);
    await isUnavailable(() => tasks.fail(first.token, { message: 'no', isTerminal: true }));
    await isUnavailable(() => tasks.cancel(second.token.id));
    await back();
    await tasks.fail(first.token, { message: 'no', isTerminal: true });
    assert.equal(await tasks.cancel(second.token.id), true);
    assert.equal((await tasks.get(first.token.id))?.state, 'failed');
    assert.equal((await tasks.get(second.token.id))?.state, 'cancelled');
  },
};

/** These cases use the system clock, because workers poll in real time. */
export const resumeCases: TasksCases = {
  async 'workers and the sweeper resume after an outage, and log it once'(tasks, { opened }) {
    const { observer, count } = listener();
    await using other =
      (await opened.second?.({ types: caseTypes, observer })) ?? assert.fail('no second process');
    const emailSend = task(email, async () => 'sent');
    await using workers = startWorkers(other, [emailSend], { drainMs: 1_000 });
    await using sweeper = startTaskSweeper(other, { everyMs: 50 });
    const first = await tasks.enqueue(emailSend.job(null));
    await tasks.whenEnded(first.id, { timeoutMs: 30_000 });
    // The job becomes due during the outage: a claim on SQLite notices the outage only then.
    const late = await tasks.enqueue(emailSend.job(null, { delayMs: 1_000 }));
    const back = await away(opened);
    await eventually(
      'both have noticed',
      async () => count('task workers lost their engine') > 0 && count('task sweep failed') > 0,
    );
    await back();
    assert.equal((await tasks.whenEnded(late.id, { timeoutMs: 30_000 })).result, 'sent');
    await eventually(
      'both have logged that they resumed',
      async () => count('task workers resumed') > 0 && count('task sweeper resumed') > 0,
    );
    for (const message of [
      'task workers lost their engine',
      'task workers resumed',
      'task sweep failed',
      'task sweeper resumed',
    ]) {
      assert.equal(count(message), 1, message);
    }
    await sweeper[Symbol.asyncDispose]();
    await workers.stop();
  },

  async 'a job that runs during an outage keeps its worker, and its step runs once'(
    tasks,
    { opened },
  ) {
    await using other =
      (await opened.second?.({ types: caseTypes })) ?? assert.fail('no second process');
    const begun = Promise.withResolvers<void>();
    const isAway = Promise.withResolvers<void>();
    let runs = 0;
    const emailSend = task(email, async (ctx) => {
      await ctx.step('send', async () => {
        runs += 1;
        begun.resolve();
        await isAway.promise;
      });
      return ctx.attempt;
    });
    await using workers = startWorkers(other, [emailSend], { drainMs: 1_000 });
    const { id } = await tasks.enqueue(emailSend.job(null));
    await begun.promise;
    const back = await away(opened);
    isAway.resolve();
    await isUnavailable(() => tasks.enqueue(emailSend.job(null)));
    await back();
    const ended = await tasks.whenEnded(id, { timeoutMs: 30_000 });
    assert.deepEqual([ended.state, ended.result, ended.failures, runs], ['completed', 1, 0, 1]);
    await workers.stop();
  },
};

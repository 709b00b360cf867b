// Claims: priority, fairness between tenants, rate limits, concurrency keys, pauses and waiting.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import {
  caseTypes,
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  numbersOf,
  report,
  secondOf,
  type TasksCases,
} from './fixture.ts';

async function tenantsOf(tasks: Tasks, limit: number, type = email): Promise<string[]> {
  const claimed = await claimSome(tasks, limit, { types: { [type]: limit } });
  return claimed.map(({ task }) => task.tenant ?? '');
}

export const orderCases: TasksCases = {
  async 'the highest priority is claimed first'(tasks) {
    for (const priority of [5, 1, 9, 5, 0]) {
      await tasks.enqueue({ type: email, payload: { n: priority }, priority });
    }
    assert.deepEqual(numbersOf(await claimSome(tasks, 2)), [9, 5]);
    assert.deepEqual(numbersOf(await claimSome(tasks, 10)), [5, 1, 0]);
  },

  async 'within a priority, the job that was due first is claimed first'(tasks, { clock }) {
    await tasks.enqueue({ type: email, payload: { n: 3 }, delayMs: 3_000 });
    await tasks.enqueue({ type: email, payload: { n: 1 }, delayMs: 1_000 });
    await tasks.enqueue({ type: email, payload: { n: 2 }, delayMs: 2_000 });
    await clock.advance(10_000);
    await tasks.enqueue({ type: email, payload: { n: 4 } });
    assert.deepEqual(numbersOf(await claimSome(tasks, 10)), [1, 2, 3, 4]);
  },

  async 'tenants take turns, so the backlog of one tenant does not delay the others'(tasks) {
    await enqueueNumbers(tasks, 50, { tenant: 'large' });
    await enqueueNumbers(tasks, 2, { tenant: 'small' });
    await enqueueNumbers(tasks, 1, { tenant: 'tiny' });
    const first = await tenantsOf(tasks, 6);
    assert.deepEqual(
      first.toSorted((a, b) => (a < b ? -1 : 1)),
      ['large', 'large', 'large', 'small', 'small', 'tiny'],
    );
  },

  async 'the turns of tenants continue from one claim to the next'(tasks) {
    await enqueueNumbers(tasks, 6, { tenant: 'a' });
    await enqueueNumbers(tasks, 6, { tenant: 'b' });
    const seen: string[] = [];
    for (let n = 0; n < 6; n += 1) seen.push(...(await tenantsOf(tasks, 1)));
    assert.equal(seen.filter((tenant) => tenant === 'a').length, 3);
  },

  async 'each tenant keeps its order while tenants take turns'(tasks, { clock }) {
    for (let n = 0; n < 10; n += 1) {
      await tasks.enqueue({ type: email, payload: { n }, tenant: n % 2 === 0 ? 'a' : 'b' });
      await clock.advance(1);
    }
    const numbers = numbersOf(await claimSome(tasks, 10));
    assert.deepEqual(
      numbers.filter((n) => n % 2 === 0),
      [0, 2, 4, 6, 8],
    );
    assert.deepEqual(
      numbers.filter((n) => n % 2 === 1),
      [1, 3, 5, 7, 9],
    );
  },
};

export const limitCases: TasksCases = {
  async 'free capacity goes to any type that has jobs'(tasks) {
    const types = { [email]: 1, [report]: 1, keyed: 1, limited: 1 };
    for (const type of Object.keys(types)) {
      await tasks.enqueue({ type, payload: { n: 1, account: 'x' } });
      const claimed = await claimSome(tasks, 1, { types, limit: 1 });
      assert.deepEqual(
        claimed.map(({ task }) => task.type),
        [type],
      );
    }
  },

  async 'a rate limit holds across claims and admits the next job in time'(tasks, { clock }) {
    await enqueueNumbers(tasks, 10, { type: 'limited' });
    assert.equal((await tenantsOf(tasks, 10, 'limited')).length, 3);
    await nothingIn(tasks, 'limited');
    await clock.advance(19_000);
    await nothingIn(tasks, 'limited');
    await clock.advance(1_001);
    assert.equal((await tenantsOf(tasks, 10, 'limited')).length, 1);
    await clock.advance(60_000);
    assert.equal((await tenantsOf(tasks, 10, 'limited')).length, 3);
  },

  async 'a rate limit per tenant does not affect other tenants'(tasks) {
    await enqueueNumbers(tasks, 5, { type: 'limited-each', tenant: 'a' });
    await enqueueNumbers(tasks, 5, { type: 'limited-each', tenant: 'b' });
    const tenants = await tenantsOf(tasks, 10, 'limited-each');
    assert.deepEqual(
      tenants.toSorted((a, b) => (a < b ? -1 : 1)),
      ['a', 'a', 'b', 'b'],
    );
  },

  async 'limits the running jobs of one concurrency key'(tasks) {
    const keyed = (n: number, account: string) => ({ type: 'keyed', payload: { n, account } });
    await tasks.enqueueMany([keyed(0, 'x'), keyed(1, 'x'), keyed(2, 'y'), keyed(3, 'x')]);
    const first = await claimSome(tasks, 10, { types: { keyed: 10 } });
    assert.deepEqual(numbersOf(first), [0, 2]);
    await nothingIn(tasks, 'keyed');
    const [x] = first;
    if (x === undefined) assert.fail('missing');
    await tasks.complete(x.token);
    assert.deepEqual(numbersOf(await claimSome(tasks, 10, { types: { keyed: 10 } })), [1]);
    await nothingIn(tasks, 'keyed');
  },

  async 'a concurrency key is free when its job waits, fails, or is released'(tasks, { clock }) {
    const payload = { n: 0, account: 'x' };
    await tasks.enqueueMany([
      { type: 'keyed', payload },
      { type: 'keyed', payload: { ...payload, n: 1 } },
    ]);
    const first = await claimOne(tasks, 'keyed');
    await tasks.sleep(first.token, { name: 'nap', until: new Date(clock.now() + 1_000) });
    const second = await claimOne(tasks, 'keyed');
    assert.deepEqual(numbersOf([second]), [1]);
    await clock.advance(1_000);
    await nothingIn(tasks, 'keyed');
    await tasks.fail(second.token, { message: 'no' });
    const third = await claimOne(tasks, 'keyed');
    assert.deepEqual(numbersOf([third]), [0]);
    await tasks.release(third.token);
    await claimOne(tasks, 'keyed');
    await nothingIn(tasks, 'keyed');
  },

  async 'a full concurrency key blocks no other key'(tasks) {
    const payloads = Array.from({ length: 150 }, (_, n) => ({ n, account: 'busy' }));
    await tasks.enqueueMany(payloads.map((payload) => ({ type: 'keyed', payload })));
    await claimOne(tasks, 'keyed');
    await tasks.enqueue({ type: 'keyed', payload: { n: 999, account: 'other' } });
    assert.deepEqual(numbersOf([await claimOne(tasks, 'keyed')]), [999]);
  },

  async 'treats the same key of two tenants as two separate keys'(tasks) {
    const payload = { n: 0, account: 'x' };
    await tasks.enqueueMany([
      { type: 'keyed', payload, tenant: 'a' },
      { type: 'keyed', payload, tenant: 'b' },
    ]);
    assert.equal((await claimSome(tasks, 10, { types: { keyed: 10 } })).length, 2);
  },

  async 'limits concurrency per tenant'(tasks) {
    await enqueueNumbers(tasks, 5, { type: 'per-tenant', tenant: 'a' });
    await enqueueNumbers(tasks, 1, { type: 'per-tenant', tenant: 'b' });
    const tenants = await tenantsOf(tasks, 10, 'per-tenant');
    assert.deepEqual(
      tenants.toSorted((a, b) => (a < b ? -1 : 1)),
      ['a', 'a', 'b'],
    );
  },

  async 'limits hold across processes that claim concurrently'(tasks, context) {
    if (!context.capabilities.crossProcess) return;
    await using second = await secondOf(context);
    await enqueueNumbers(tasks, 20, { type: 'limited' });
    const payloads = Array.from({ length: 20 }, (_, n) => ({ n, account: 'x' }));
    await tasks.enqueueMany(payloads.map((payload) => ({ type: 'keyed', payload })));
    for (const [type, most] of [
      ['limited', 3],
      ['keyed', 1],
    ] as const) {
      const both = await Promise.all(
        [tasks, second].map((each, at) =>
          claimSome(each, 10, { types: { [type]: 10 }, worker: `w${at}` }),
        ),
      );
      assert.equal(both.flat().length, most, type);
    }
  },
};

export const modeCases: TasksCases = {
  async 'a paused type accepts jobs and delivers none until it is resumed'(tasks) {
    await tasks.pause(email);
    await enqueueNumbers(tasks, 1);
    await enqueueNumbers(tasks, 1, { type: report });
    await nothingIn(tasks);
    await claimOne(tasks, report);
    assert.deepEqual(await tasks.modes(), { [email]: 'paused' });
    await tasks.resume(email);
    await claimOne(tasks);
    assert.deepEqual(await tasks.modes(), {});
  },

  async 'running jobs continue when their type is paused'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.pause(email);
    await tasks.finishStep(token, { name: 'load' });
    await tasks.complete(token);
  },

  async 'a draining type processes its jobs, and accepts no new ones'(tasks) {
    await enqueueNumbers(tasks, 1);
    await tasks.drain(email);
    const error = await rejectsWith(() => enqueueNumbers(tasks, 1), 'TASK_TYPE_DRAINING');
    assert.equal(error.retryable, true);
    await tasks.complete((await claimOne(tasks)).token);
    await tasks.resume(email);
    await enqueueNumbers(tasks, 1);
    await claimOne(tasks);
  },
};

const waiting = { worker: 'waiter', types: { [email]: 5, limited: 5, keyed: 5 }, waitMs: 60_000 };

/** These cases use the system clock, because a wake-up must arrive immediately. */
export const waitCases: TasksCases = {
  async 'an enqueue wakes a waiting claim'(tasks) {
    const claiming = tasks.claim(waiting);
    await enqueueNumbers(tasks, 1);
    assert.equal((await claiming).length, 1);
  },

  async 'a waiting claim gets a job that becomes due'(tasks) {
    // Measured before the enqueue: syncing the disk may take part of the delay.
    const startedMs = systemClock.now();
    await tasks.enqueue({ type: email, payload: { n: 1 }, delayMs: 60 });
    assert.equal((await tasks.claim(waiting)).length, 1);
    assert.ok(systemClock.now() - startedMs >= 55);
  },

  async 'a waiting claim gets a job whose concurrency key becomes free'(tasks) {
    const payload = { n: 0, account: 'x' };
    await tasks.enqueueMany([
      { type: 'keyed', payload },
      { type: 'keyed', payload },
    ]);
    const first = await claimOne(tasks, 'keyed');
    const claiming = tasks.claim(waiting);
    await tasks.complete(first.token);
    assert.equal((await claiming).length, 1);
  },

  async 'resuming a type wakes a waiting claim'(tasks) {
    await tasks.pause(email);
    await enqueueNumbers(tasks, 1);
    const claiming = tasks.claim(waiting);
    await tasks.resume(email);
    assert.equal((await claiming).length, 1);
  },

  async 'an event and a release wake a waiting claim'(tasks) {
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    const back = tasks.claim(waiting);
    await tasks.release(token);
    const [again] = await back;
    if (again === undefined) assert.fail('missing');
    await tasks.waitForEvent(again.token, { name: 'w', event: 'go' });
    const woken = tasks.claim(waiting);
    await tasks.sendEvent(token.id, { name: 'go' });
    assert.equal((await woken).length, 1);
  },

  async 'a claim returns an empty list after waitMs, and an aborted signal cancels the wait'(
    tasks,
  ) {
    assert.deepEqual(await tasks.claim({ ...waiting, waitMs: 20 }), []);
    const stopping = new AbortController();
    const claiming = tasks.claim({ ...waiting, signal: stopping.signal });
    stopping.abort();
    await rejectsWith(() => claiming, 'ABORTED');
  },

  async 'another process wakes a waiting claim'(tasks, { opened, capabilities }) {
    if (!capabilities.crossProcess) return;
    await using second =
      (await opened.second?.({ types: caseTypes })) ?? assert.fail('no second process');
    const claiming = second.claim(waiting);
    await enqueueNumbers(tasks, 1);
    assert.equal((await claiming).length, 1);
  },
};

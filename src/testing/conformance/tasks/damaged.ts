// A stored job that cannot be read: it fails with its reason, stays in the lists, and does not stop the other jobs.

import assert from 'node:assert/strict';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  numbersOf,
  type DamagedPart,
  type OpenedTasks,
  type TasksCases,
} from './fixture.ts';

const parts: readonly DamagedPart[] = ['head', 'payload', 'run'];

/** Damages one job for each part, and leaves the others. */
async function damagedJobs(opened: OpenedTasks): Promise<readonly string[]> {
  const ids = await enqueueNumbers(opened.tasks, parts.length + 2);
  for (const [at, part] of parts.entries()) await opened.damage?.(ids[at] ?? '', part);
  return ids.slice(0, parts.length);
}

export const damagedCases: TasksCases = {
  async 'a claim fails damaged jobs with a code, and returns the others'(tasks, { opened }) {
    if (opened.damage === undefined) return;
    const ids = await damagedJobs(opened);
    const claimed = await claimSome(tasks, 10);
    assert.deepEqual(numbersOf(claimed), [parts.length, parts.length + 1]);
    for (const id of ids) {
      const failed = await tasks.get(id);
      assert.deepEqual([failed?.state, failed?.error?.code], ['failed', 'STORE_CORRUPT']);
      assert.match(failed?.error?.message ?? '', /^the stored job cannot be read: /);
    }
    await nothingIn(tasks);
    const { tasks: failed } = await tasks.list({ type: email, state: 'failed' });
    assert.deepEqual(failed.map(({ id }) => id).toSorted(), ids.toSorted());
    await Promise.all(claimed.map(({ token }) => tasks.complete(token, null)));
  },

  async 'damaged jobs are listed with the others, also by label'(tasks, { opened }) {
    if (opened.damage === undefined) return;
    const ids = await damagedJobs(opened);
    const labelled = await tasks.enqueue({ type: email, payload: { n: 9 }, labels: { a: 'b' } });
    const page = await tasks.list({ type: email });
    assert.equal(page.tasks.length, parts.length + 3);
    const run = page.tasks.find(({ id }) => id === ids.at(-1));
    assert.equal(run?.error?.code, 'STORE_CORRUPT');
    const found = await tasks.list({ labels: { a: 'b' } });
    assert.deepEqual(
      found.tasks.map(({ id }) => id),
      [labelled.id],
    );
  },

  async 'the sweeper fails a damaged job that waits, because nothing would wake it'(
    tasks,
    { opened },
  ) {
    if (opened.damage === undefined) return;
    await enqueueNumbers(tasks, 1);
    const { token } = await claimOne(tasks);
    await tasks.waitForEvent(token, { name: 'paid', event: 'paid', timeoutMs: undefined });
    await opened.damage(token.id, 'run');
    await createTaskSweep(tasks).sweep();
    const failed = await tasks.get(token.id);
    assert.deepEqual([failed?.state, failed?.error?.code], ['failed', 'STORE_CORRUPT']);
  },

  async 'the sweeper takes jobs of a lost worker although one of them is damaged'(
    tasks,
    { opened, clock },
  ) {
    if (opened.damage === undefined) return;
    const ids = await enqueueNumbers(tasks, parts.length + 1);
    await claimSome(tasks, ids.length, { leaseMs: 1_000 });
    for (const [at, part] of parts.entries()) await opened.damage(ids[at] ?? '', part);
    await clock.advance(1_000);
    await createTaskSweep(tasks).sweep();
    const again = await claimSome(tasks, 10, { worker: 'worker-2' });
    assert.deepEqual(numbersOf(again), [parts.length]);
    for (const id of ids.slice(0, -1)) {
      const failed = await tasks.get(id);
      assert.deepEqual([failed?.state, failed?.error?.code], ['failed', 'STORE_CORRUPT']);
    }
  },
};

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coalesce } from './coalesce.ts';

/** Creates runs that the test resolves. */
function controlled() {
  const runs: PromiseWithResolvers<void>[] = [];
  const call = coalesce(() => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  return { runs, call };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls during a run share the next one', async () => {
  const { runs, call } = controlled();
  const first = call();
  const later = [call(), call(), call()];
  assert.equal(runs.length, 1);
  runs[0]?.resolve();
  await first;
  await turn();
  assert.equal(runs.length, 2);
  runs[1]?.resolve();
  await Promise.all(later);
  assert.equal(runs.length, 2);
});

test('a call never gets a run that started before it', async () => {
  const { runs, call } = controlled();
  void call();
  let done = false;
  const second = call().then(() => (done = true));
  runs[0]?.resolve();
  await turn();
  assert.equal(done, false);
  runs[1]?.resolve();
  await second;
});

test('a failure rejects only the callers of that run', async () => {
  const { runs, call } = controlled();
  const first = call();
  const second = call();
  runs[0]?.reject(new Error('broken'));
  await assert.rejects(first, /broken/);
  await turn();
  runs[1]?.resolve();
  await second;
  const third = call();
  runs[2]?.resolve();
  await third;
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../testing/fake-clock.ts';
import { repeatWork } from './repeat-work.ts';

async function whenAsleep(clock: { readonly sleepers: number }): Promise<void> {
  while (clock.sleepers === 0) await new Promise(setImmediate);
}

test('runs immediately and after each pause, also after a failure, until it is disposed', async () => {
  const clock = fakeClock();
  const failures: unknown[] = [];
  let runs = 0;
  const repeated = repeatWork(
    async () => {
      runs += 1;
      if (runs === 2) throw new Error('away');
    },
    { everyMs: 1_000, clock, onFailure: (error) => failures.push(String(error)) },
  );
  for (const expected of [1, 2, 3]) {
    await whenAsleep(clock);
    assert.equal(runs, expected);
    await clock.advance(1_000);
  }
  await repeated[Symbol.asyncDispose]();
  assert.deepEqual(failures, ['Error: away']);
  assert.equal(clock.sleepers, 0);
});

test('a failure can end the repetition, and a failure during a dispose is not reported', async () => {
  const clock = fakeClock();
  const failing = repeatWork(() => Promise.reject(new Error('closed')), {
    everyMs: 1_000,
    clock,
    onFailure: (_error, stop) => stop(),
  });
  await new Promise(setImmediate);
  assert.equal(clock.sleepers, 0);
  await failing[Symbol.asyncDispose]();
  const running = repeatWork(
    (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      }),
    { everyMs: 1_000, clock, onFailure: () => assert.fail('the failure was reported') },
  );
  await running[Symbol.asyncDispose]();
});

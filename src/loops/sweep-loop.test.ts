import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { sweepLoop } from './sweep-loop.ts';

async function whenAsleep(clock: { readonly sleepers: number }): Promise<void> {
  while (clock.sleepers === 0) await new Promise(setImmediate);
}

test('runs immediately and after each pause, and reports consecutive failures once', async () => {
  const clock = fakeClock();
  const reports: string[] = [];
  const outcomes = [undefined, 'away', 'away', 'broken', undefined];
  let runs = 0;
  const loop = sweepLoop(
    async () => {
      const outcome = outcomes[runs];
      runs += 1;
      if (outcome !== undefined) throw new Error(outcome);
    },
    {
      everyMs: 1_000,
      clock,
      onFailure: (error) => reports.push(`run ${runs}: ${String(error)}`),
      onRecovered: () => reports.push(`run ${runs}: recovered`),
    },
  );
  for (const index of outcomes.keys()) {
    await whenAsleep(clock);
    assert.equal(runs, index + 1);
    await clock.advance(1_000);
  }
  await loop[Symbol.asyncDispose]();
  assert.deepEqual(reports, ['run 2: Error: away', 'run 5: recovered']);
  assert.equal(clock.sleepers, 0);
});

test('a closed engine ends the loop, and a failure during a dispose is not reported', async () => {
  const clock = fakeClock();
  const onFailure = (): never => assert.fail('the failure was reported');
  for (const code of ['STORE_CLOSED', 'BUS_CLOSED', 'TASKS_CLOSED'] as const) {
    const closed = sweepLoop(() => Promise.reject(new MillraceError(code, 'closed')), {
      everyMs: 1_000,
      clock,
      onFailure,
    });
    await new Promise(setImmediate);
    assert.equal(clock.sleepers, 0);
    await closed[Symbol.asyncDispose]();
  }
  const running = sweepLoop(
    (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      }),
    { everyMs: 1_000, clock, onFailure },
  );
  await running[Symbol.asyncDispose]();
});

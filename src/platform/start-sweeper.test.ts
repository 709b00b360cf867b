import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { startSweeper } from './start-sweeper.ts';

test('removes old rows in batches, once a minute, and continues after an outage', async () => {
  const clock = fakeClock();
  const startMs = clock.now();
  let left = 2_500;
  const calls: number[] = [];
  const warnings: string[] = [];
  const swept: number[] = [];
  const warn = (_fields: object, message: string): void => void warnings.push(message);
  const silent = (): void => undefined;
  const turn = async (): Promise<void> => {
    while (clock.sleepers === 0) await new Promise(setImmediate);
  };
  const sweeper = await startSweeper({
    what: 'traces',
    clock,
    observer: { log: { debug: silent, info: silent, warn, error: silent } },
    keptMs: 5_000,
    async sweep(before, limit) {
      calls.push(before.getTime() - startMs);
      if (clock.now() === startMs + 60_000) throw new Error('away');
      const count = Math.min(limit, left);
      left -= count;
      return count;
    },
    onSwept: (count) => swept.push(count),
  });
  await turn();
  assert.deepEqual(
    [calls, swept],
    [
      [-5_000, -5_000, -5_000],
      [1_000, 1_000, 500],
    ],
  );
  await clock.advance(60_000);
  await turn();
  assert.deepEqual(warnings, ['sweep failed']);
  left = 7;
  await clock.advance(60_000);
  await turn();
  assert.deepEqual([calls.slice(3), swept.at(-1)], [[55_000, 115_000], 7]);
  await sweeper[Symbol.asyncDispose]();
  assert.equal(clock.sleepers, 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { each, eachInFlight, timed } from './loops.ts';

const unrecorded = (): void => assert.fail('nothing is to be recorded');

test('cycles through the items, and continues where the last run ended', () => {
  const seen: string[] = [];
  const run = each(['a', 'b', 'c'], (item) => seen.push(item));
  run(4, unrecorded);
  run(3, unrecorded);
  assert.equal(seen.join(''), 'abcabca');
});

test('keeps exactly this many operations in flight, and does each once', async () => {
  const started: number[] = [];
  let flying = 0;
  let flyingMax = 0;
  const run = eachInFlight(3, async (index) => {
    started.push(index);
    flying += 1;
    flyingMax = Math.max(flyingMax, flying);
    await Promise.resolve();
    flying -= 1;
  });
  await run(7, unrecorded);
  await run(2, unrecorded);
  assert.equal(flyingMax, 3);
  assert.deepEqual(started, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('records one time for each operation', async () => {
  const times: number[] = [];
  await timed(() => Promise.resolve())(5, (ms) => times.push(ms));
  assert.equal(times.length, 5);
  assert.ok(times.every((ms) => ms >= 0));
});

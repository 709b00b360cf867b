import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../foundation/clock.ts';
import { toPosition } from '../../store/position.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createProgressWaiters } from './progress-waiters.ts';

const at = (sequence: number) => toPosition(sequence);

test('notify wakes the waiters up to the position, and all waiters if the position is unknown', async () => {
  const waiters = createProgressWaiters(systemClock, 60_000);
  const woken: number[] = [];
  const waits = [3, 5, 7].map((target) =>
    waiters.wait(at(target), undefined).then(() => woken.push(target)),
  );
  waiters.notify(at(5));
  await Promise.all(waits.slice(0, 2));
  assert.deepEqual([woken, waiters.size], [[3, 5], 1]);
  waiters.notify(undefined);
  await Promise.all(waits);
  assert.equal(waiters.size, 0);
});

test('one timer wakes all waiters after the poll interval and ends with the last waiter', async () => {
  const clock = fakeClock();
  const waiters = createProgressWaiters(clock, 50);
  const waits = [1, 2].map((target) => waiters.wait(at(target), undefined));
  assert.deepEqual([waiters.size, clock.sleepers], [2, 1]);
  await clock.advance(50);
  await Promise.all(waits);
  assert.deepEqual([waiters.size, clock.sleepers], [0, 0]);
  const again = waiters.wait(at(1), undefined);
  assert.equal(clock.sleepers, 1);
  await clock.advance(50);
  await again;
  assert.equal(clock.sleepers, 0);
});

test('an aborted signal wakes only its own waiter, even if it was aborted before the wait', async () => {
  const waiters = createProgressWaiters(systemClock, 60_000);
  const ending = new AbortController();
  const mine = waiters.wait(at(1), ending.signal);
  const other = waiters.wait(at(1), undefined);
  ending.abort();
  await mine;
  await waiters.wait(at(1), ending.signal);
  assert.equal(waiters.size, 1);
  waiters.notify(at(1));
  await other;
});

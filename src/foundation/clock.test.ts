import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { systemClock } from './clock.ts';
import { hasCode } from './error.ts';

for (const [name, clock] of [
  ['the system clock', systemClock],
  ['the fake clock', fakeClock()],
] as const) {
  test(`${name} rejects a sleep when the signal has already fired`, async () => {
    await assert.rejects(clock.sleep(60_000, AbortSignal.abort()), isAborted);
  });

  test(`${name} wakes at once when the signal fires`, async () => {
    const stopping = new AbortController();
    const slept = clock.sleep(60_000, stopping.signal);
    stopping.abort(new Error('shutdown'));
    await assert.rejects(slept, isAborted);
  });
}

test('the system clock removes its listener from the signal when the sleep is over', async () => {
  const { signal } = new AbortController();
  const sleeping = systemClock.sleep(1, signal);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  await sleeping;
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('the fake clock wakes sleepers in the order of their times', async () => {
  const clock = fakeClock({ nowMs: 0 });
  const woken: string[] = [];
  const sleepers = [
    clock.sleep(200).then(() => woken.push('late')),
    clock.sleep(100).then(() => woken.push('early')),
  ];
  await clock.advance(150);
  assert.deepEqual([woken, clock.sleepers, clock.now()], [['early'], 1, 150]);
  await clock.advance(50);
  await Promise.all(sleepers);
  assert.deepEqual(woken, ['early', 'late']);
});

function isAborted(error: unknown): boolean {
  return hasCode(error, 'ABORTED');
}

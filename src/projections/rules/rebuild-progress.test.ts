import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toPosition } from '../../store/position.ts';
import { createProgressMeter } from './rebuild-progress.ts';

test('the speed is measured over the last seconds and determines the remaining time', () => {
  const meter = createProgressMeter();
  const at = (seconds: number, events: number) =>
    meter.at({
      atMs: seconds * 1_000,
      events,
      position: toPosition(events),
      head: toPosition(10_000),
    });
  assert.equal(at(0, 0).secondsLeft, undefined);
  assert.equal(at(1, 100).eventsPerSecond, 100);
  assert.equal(at(1, 100).secondsLeft, 99);
  for (let second = 2; second <= 20; second += 1) at(second, second * 200);
  const late = at(21, 4_200);
  assert.equal(Math.round(late.eventsPerSecond), 200);
  assert.equal(Math.round(late.secondsLeft ?? 0), 29);
  assert.equal(late.done, 0.42);
});

test('a rebuild of an empty store is complete', () => {
  const position = toPosition(0);
  const progress = createProgressMeter().at({ atMs: 0, events: 0, position, head: position });
  assert.deepEqual([progress.done, progress.secondsLeft], [1, 0]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { fakeClock } from '../testing/fake-clock.ts';
import { createCallDeadlines } from './call-deadlines.ts';

test('each call ends at its own time, and one that ended before is not told', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock, 100);
  const expired: string[] = [];
  deadlines.begin(() => expired.push('a'));
  await clock.advance(40);
  const endB = deadlines.begin(() => expired.push('b'));
  deadlines.begin(() => expired.push('c'));
  endB();
  await clock.advance(60);
  assert.deepEqual(expired, ['a']);
  await clock.advance(40);
  assert.deepEqual(expired, ['a', 'c']);
  assert.equal(clock.sleepers, 0);
});

test('calls that follow each other share a timer, and none is left when no call is', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock, 100);
  const ends = Array.from({ length: 3 }, () => deadlines.begin(() => assert.fail()));
  assert.equal(clock.sleepers, 1);
  for (const end of ends) end();
  const end = deadlines.begin(() => assert.fail());
  assert.equal(clock.sleepers, 1);
  await setImmediate();
  assert.equal(clock.sleepers, 1);
  end();
  await setImmediate();
  assert.equal(clock.sleepers, 0);
});

test('a call that begins when another one expires has its own deadline', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock, 100);
  const expired: number[] = [];
  const again = (count: number): void => {
    deadlines.begin(() => {
      expired.push(clock.now());
      // At once, and in the steps that follow.
      if (count > 0) void Promise.resolve().then(() => again(count - 1));
    });
  };
  const startMs = clock.now();
  again(3);
  for (let step = 0; step < 4; step += 1) await clock.advance(100);
  assert.deepEqual(
    expired.map((ms) => ms - startMs),
    [100, 200, 300, 400],
  );
});

test('whoever stops ends all calls, and those that come later at once', async () => {
  const clock = fakeClock();
  const stopping = new AbortController();
  const deadlines = createCallDeadlines(clock, 100, stopping.signal);
  const ended: string[] = [];
  const end = deadlines.begin(() => assert.fail());
  deadlines.begin((why) => ended.push(why));
  end();
  stopping.abort();
  assert.deepEqual(ended, ['stopped']);
  assert.equal(clock.sleepers, 0);
  deadlines.begin((why) => ended.push(why));
  assert.deepEqual(ended, ['stopped', 'stopped']);
});

test('over any history, exactly those expire that lasted as long as their time', async () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 0, max: 60 }),
    lastsMs: fc.integer({ min: 1, max: 200 }).filter((ms) => ms !== 100),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const clock = fakeClock();
      const deadlines = createCallDeadlines(clock, 100);
      const expired = new Set<number>();
      for (const [index, { pauseMs, lastsMs }] of steps.entries()) {
        await clock.advance(pauseMs);
        const end = deadlines.begin(() => expired.add(index));
        void clock.sleep(lastsMs).then(end);
      }
      await clock.advance(1_000);
      const late = steps.flatMap(({ lastsMs }, index) => (lastsMs > 100 ? [index] : []));
      assert.deepEqual(
        [...expired].toSorted((a, b) => a - b),
        late,
      );
      assert.equal(clock.sleepers, 0);
    }),
    { numRuns: 40 },
  );
});

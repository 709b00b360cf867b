import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createCallDeadlines } from './call-deadlines.ts';

test('each call expires after its time limit, unless it ended before', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock);
  const expired: string[] = [];
  deadlines.begin(100, () => expired.push('a'));
  await clock.advance(40);
  const endB = deadlines.begin(100, () => expired.push('b'));
  deadlines.begin(100, () => expired.push('c'));
  endB();
  await clock.advance(60);
  assert.deepEqual(expired, ['a']);
  await clock.advance(40);
  assert.deepEqual(expired, ['a', 'c']);
  assert.equal(clock.sleepers, 0);
});

test('calls with different time limits expire independently', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock);
  const expired: string[] = [];
  deadlines.begin(100, () => expired.push('long'));
  deadlines.begin(30, () => expired.push('short'));
  await clock.advance(30);
  assert.deepEqual(expired, ['short']);
  await clock.advance(70);
  assert.deepEqual(expired, ['short', 'long']);
  assert.equal(clock.sleepers, 0);
});

test('consecutive calls share a timer, and no timer is left without calls', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock);
  const ends = Array.from({ length: 3 }, () => deadlines.begin(100, () => assert.fail()));
  assert.equal(clock.sleepers, 1);
  for (const end of ends) end();
  const end = deadlines.begin(100, () => assert.fail());
  assert.equal(clock.sleepers, 1);
  await setImmediate();
  assert.equal(clock.sleepers, 1);
  end();
  await setImmediate();
  assert.equal(clock.sleepers, 0);
});

test('a call that begins when another one expires has a separate deadline', async () => {
  const clock = fakeClock();
  const deadlines = createCallDeadlines(clock);
  const expired: number[] = [];
  const again = (count: number): void => {
    deadlines.begin(100, () => {
      expired.push(clock.now());
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

test('stopping expires all calls, and later calls immediately', async () => {
  const clock = fakeClock();
  const stopping = new AbortController();
  const deadlines = createCallDeadlines(clock, stopping.signal);
  const ended: string[] = [];
  const end = deadlines.begin(100, () => assert.fail());
  deadlines.begin(100, (why) => ended.push(why));
  end();
  stopping.abort();
  assert.deepEqual(ended, ['stopped']);
  assert.equal(clock.sleepers, 0);
  deadlines.begin(100, (why) => ended.push(why));
  assert.deepEqual(ended, ['stopped', 'stopped']);
});

test('over any history, exactly the calls expire that outlast their limit', async () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 0, max: 60 }),
    lastsMs: fc.integer({ min: 1, max: 200 }).filter((ms) => ms !== 100),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const clock = fakeClock();
      const deadlines = createCallDeadlines(clock);
      const expired = new Set<number>();
      for (const [index, { pauseMs, lastsMs }] of steps.entries()) {
        await clock.advance(pauseMs);
        const end = deadlines.begin(100, () => expired.add(index));
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../testing/fake-clock.ts';
import { withinTime } from './within-time.ts';

const never = new Promise<never>(() => undefined);

test('work that finishes in time returns its result or its error', async () => {
  const clock = fakeClock();
  const late = (): never => assert.fail('it was in time');
  assert.equal(await withinTime(Promise.resolve(7), { ms: 10, late, clock }), 7);
  const failing = Promise.reject(new Error('no'));
  await assert.rejects(withinTime(failing, { ms: 10, late, clock }), /no/);
  assert.equal(clock.sleepers, 0);
});

test('work that does not finish in time returns the result or the error of the function late', async () => {
  const clock = fakeClock();
  const given = withinTime(never, { ms: 10, late: () => 'late', clock });
  const thrown = withinTime(never, {
    ms: 20,
    late: () => {
      throw new Error('too late');
    },
    clock,
  });
  const rejected = assert.rejects(thrown, /too late/);
  await clock.advance(10);
  assert.equal(await given, 'late');
  await clock.advance(10);
  await rejected;
});

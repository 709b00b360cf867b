import assert from 'node:assert/strict';
import { test } from 'node:test';
import { once } from './once.ts';

test('opens once for all callers, and again after a failure', async () => {
  let calls = 0;
  const open = once(async () => {
    calls += 1;
    if (calls === 1) throw new Error('unavailable');
    return calls;
  });
  const failed = await Promise.allSettled([open(), open()]);
  assert.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.deepEqual(await Promise.all([open(), open()]), [2, 2]);
  assert.equal(await open(), 2);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aroundCalls } from './around-calls.ts';

test('runs each method within the function, and keeps other members', async () => {
  let calls = 0;
  const methods = { add: async (a: number, b: number) => a + b, limit: 3 };
  const counted = aroundCalls(methods, (work) => {
    calls += 1;
    return work();
  });
  assert.equal(await counted.add(1, 2), 3);
  assert.deepEqual([calls, counted.limit], [1, 3]);
});

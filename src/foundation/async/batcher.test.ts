import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatcher } from './batcher.ts';

interface Call {
  readonly items: readonly string[];
  readonly end: () => void;
}

function batcherOf(options: { readonly batchMax?: number; readonly callsMax?: number } = {}) {
  const calls: Call[] = [];
  let onCall: () => void = () => undefined;
  const batcher = createBatcher<string, string>(
    async (items) => {
      const over = Promise.withResolvers<void>();
      calls.push({ items, end: over.resolve });
      onCall();
      await over.promise;
      if (items.includes('bad')) throw new Error('bad');
      return items.map((item) => `${item}!`);
    },
    { batchMax: 100, ...options, keyOf: (item) => item.split(':')[0] },
  );
  async function nthCall(count: number): Promise<Call> {
    while (calls.length < count) await new Promise<void>((resolve) => (onCall = resolve));
    return calls[count - 1] as Call;
  }
  return { batcher, calls, nthCall };
}

test('items of one turn of the event loop share a call, also items added by promises', async () => {
  const { batcher, nthCall } = batcherOf();
  const first = batcher.add('a');
  const second = Promise.resolve()
    .then(() => undefined)
    .then(() => batcher.add('b'));
  const call = await nthCall(1);
  assert.deepEqual(call.items, ['a', 'b']);
  call.end();
  assert.deepEqual(await Promise.all([first, second]), ['a!', 'b!']);
});

test('limits concurrent calls, and runs waiting items after them', async () => {
  const { batcher, calls, nthCall } = batcherOf({ batchMax: 1, callsMax: 2 });
  const all = Promise.all(['a', 'b', 'c'].map((item) => batcher.add(item)));
  await nthCall(1);
  const second = await nthCall(2);
  assert.equal(batcher.waiting, 1);
  second.end();
  const third = await nthCall(3);
  assert.deepEqual(third.items, ['c']);
  for (const { end } of calls) end();
  assert.deepEqual(await all, ['a!', 'b!', 'c!']);
  await batcher.idle();
});

test('an item waits for the running call with the same key, also if another call is allowed', async () => {
  const { batcher, nthCall } = batcherOf({ callsMax: 2 });
  const one = batcher.add('a:1');
  const first = await nthCall(1);
  const two = batcher.add('a:2');
  const other = batcher.add('b:1');
  const second = await nthCall(2);
  assert.deepEqual(second.items, ['b:1']);
  second.end();
  await other;
  first.end();
  const third = await nthCall(3);
  assert.deepEqual(third.items, ['a:2']);
  third.end();
  assert.deepEqual(await Promise.all([one, two]), ['a:1!', 'a:2!']);
});

test('a failed call rejects its items, and later items continue', async () => {
  const { batcher, nthCall } = batcherOf();
  const failed = assert.rejects(batcher.add('bad'), /bad/);
  (await nthCall(1)).end();
  await failed;
  const next = batcher.add('good');
  (await nthCall(2)).end();
  assert.equal(await next, 'good!');
  await batcher.idle();
});

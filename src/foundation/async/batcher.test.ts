import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatcher } from './batcher.ts';

interface Call {
  readonly items: readonly string[];
  readonly end: () => void;
}

function batcherOf(batchMax = 100) {
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
    { batchMax },
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

test('one call runs at a time, and waiting items follow in order', async () => {
  const { batcher, calls, nthCall } = batcherOf(2);
  const all = Promise.all(['a', 'b', 'c', 'd'].map((item) => batcher.add(item)));
  const first = await nthCall(1);
  const last = batcher.add('e');
  await new Promise(setImmediate);
  assert.equal(calls.length, 1);
  first.end();
  (await nthCall(2)).end();
  (await nthCall(3)).end();
  assert.deepEqual(
    calls.map(({ items }) => items),
    [['a', 'b'], ['c', 'd'], ['e']],
  );
  assert.deepEqual([...(await all), await last], ['a!', 'b!', 'c!', 'd!', 'e!']);
  await batcher.idle();
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

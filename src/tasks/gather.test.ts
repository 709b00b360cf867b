import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGather } from './gather.ts';

interface Call {
  readonly items: readonly string[];
  readonly end: () => void;
}

function gatherOf(options: { readonly batchMax?: number } = {}) {
  const calls: Call[] = [];
  let onCall: () => void = () => undefined;
  const gather = createGather<string, string>(async (items) => {
    const over = Promise.withResolvers<void>();
    calls.push({ items, end: over.resolve });
    onCall();
    await over.promise;
    if (items.includes('bad')) throw new Error('bad');
    return items.map((item) => `${item}!`);
  }, options);
  async function nthCall(count: number): Promise<Call> {
    while (calls.length < count) await new Promise<void>((resolve) => (onCall = resolve));
    return calls[count - 1] as Call;
  }
  return { gather, nthCall };
}

test('what one turn asks for goes in one call, also what follows by way of promises', async () => {
  const { gather, nthCall } = gatherOf();
  const first = gather.add('a');
  const second = Promise.resolve()
    .then(() => undefined)
    .then(() => gather.add('b'));
  const call = await nthCall(1);
  assert.deepEqual(call.items, ['a', 'b']);
  call.end();
  assert.deepEqual(await Promise.all([first, second]), ['a!', 'b!']);
});

test('what is asked for while a call is under way goes behind it, in batches', async () => {
  const { gather, nthCall } = gatherOf({ batchMax: 2 });
  const first = gather.add('a');
  const call = await nthCall(1);
  const others = Promise.all(['b', 'c', 'd'].map((item) => gather.add(item)));
  assert.equal(gather.waiting, 3);
  call.end();
  const second = await nthCall(2);
  assert.deepEqual(second.items, ['b', 'c']);
  second.end();
  const third = await nthCall(3);
  assert.deepEqual(third.items, ['d']);
  third.end();
  assert.equal(await first, 'a!');
  assert.deepEqual(await others, ['b!', 'c!', 'd!']);
  await gather.idle();
});

test('a call that fails fails those that went with it, and the next one goes', async () => {
  const { gather, nthCall } = gatherOf();
  const failed = assert.rejects(gather.add('bad'), /bad/);
  (await nthCall(1)).end();
  await failed;
  const next = gather.add('good');
  (await nthCall(2)).end();
  assert.equal(await next, 'good!');
  await gather.idle();
});

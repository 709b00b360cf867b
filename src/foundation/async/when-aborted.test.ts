import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { hasCode } from '../error.ts';
import { unlessAborted, whenAborted } from './when-aborted.ts';

test('resolves when the signal fires, and at once for an aborted signal', async () => {
  const stop = new AbortController();
  const wait = whenAborted(stop.signal);
  stop.abort();
  await wait.aborted;
  await whenAborted(stop.signal).aborted;
});

test('a disposed wait leaves no listener on the signal', () => {
  const { signal } = new AbortController();
  {
    using wait = whenAborted(signal);
    assert.ok(wait.aborted instanceof Promise);
    assert.equal(getEventListeners(signal, 'abort').length, 1);
  }
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('work ends normally, or with ABORTED when the signal fires first', async () => {
  const ending = new AbortController();
  const pending = new Promise<never>(() => undefined);
  assert.equal(await unlessAborted(Promise.resolve(1), undefined), 1);
  assert.equal(await unlessAborted(Promise.resolve(2), ending.signal), 2);
  const waiting = unlessAborted(pending, ending.signal);
  ending.abort();
  await assert.rejects(waiting, (error) => hasCode(error, 'ABORTED'));
  await assert.rejects(unlessAborted(pending, ending.signal), (error) => hasCode(error, 'ABORTED'));
});

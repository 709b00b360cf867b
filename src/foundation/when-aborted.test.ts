import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { whenAborted } from './when-aborted.ts';

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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEffects, type Effect } from './effects.ts';

const effect = (stream: string, revision: number, token = 1): Effect => ({
  eventId: `${stream}${revision}`,
  stream,
  revision,
  worker: 'w',
  token,
});
const all = [effect('a', 0), effect('b', 0), effect('a', 1), effect('b', 1)];
const kindsOf = (effects: readonly Effect[]): string[] =>
  checkEffects(all, effects).map((problem) => problem.split(':')[0] ?? '');

test('the effect checker accepts each event once, with streams interleaved in any order', () => {
  assert.deepEqual(kindsOf(all), []);
  assert.deepEqual(kindsOf([all[1], all[3], all[0], all[2]] as Effect[]), []);
});

test('the effect checker reports a lost, repeated, reordered, unexpected or stale effect', () => {
  const [a0, b0, a1, b1] = all as [Effect, Effect, Effect, Effect];
  assert.deepEqual(kindsOf([a0, b0, a1]), ['lost']);
  assert.deepEqual(kindsOf([a0, b0, a1, b1, b1]), ['repeated', 'out of order']);
  assert.deepEqual(kindsOf([a1, a0, b0, b1]), ['out of order']);
  assert.deepEqual(kindsOf([...all, effect('c', 0)]), ['unexpected']);
  assert.deepEqual(kindsOf([effect('a', 0, 2), a1, b0, b1]), ['stale owner']);
});

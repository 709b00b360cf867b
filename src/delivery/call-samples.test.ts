import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callSampleLimits, createCallSamples } from './call-samples.ts';

const { windowMs, callsMax, destinationsMax } = callSampleLimits;

test('counts the calls of the window, and forgets older ones', () => {
  const samples = createCallSamples(0);
  for (let at = 1; at <= 100; at += 1) samples.add('webhook:x', { atMs: at, durationMs: at });
  assert.deepEqual(samples.activity(10_000).get('webhook:x'), { perSecond: 10, p95Ms: 95 });
  samples.add('webhook:x', { atMs: windowMs + 1_000, durationMs: 7 });
  assert.deepEqual(samples.activity(windowMs + 1_000).get('webhook:x'), {
    perSecond: 1_000 / windowMs,
    p95Ms: 7,
  });
  assert.equal(samples.activity(3 * windowMs).size, 0);
});

test('divides by the time of the kept calls if there are more than fit', () => {
  const samples = createCallSamples(0);
  for (let at = 0; at < 4 * callsMax; at += 1) {
    samples.add('kafka:x', { atMs: at * 10, durationMs: 1 });
  }
  const { perSecond = 0 } = samples.activity(4 * callsMax * 10).get('kafka:x') ?? {};
  assert.equal(Math.round(perSecond), 100);
});

test('keeps a bounded number of destinations', () => {
  const samples = createCallSamples(0);
  for (let at = 0; at <= destinationsMax; at += 1) {
    samples.add(`webhook:${at}`, { atMs: 1, durationMs: 1 });
  }
  assert.equal(samples.activity(2).size, destinationsMax);
  assert.equal(samples.activity(2).has('webhook:0'), false);
});

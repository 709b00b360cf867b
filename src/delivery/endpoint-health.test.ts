import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { endpointHealthConformance } from '../testing/conformance/delivery/endpoint-health.ts';
import {
  decideHealth,
  healthy,
  memoryEndpointHealth,
  type EndpointHealth,
} from './endpoint-health.ts';

const dayMs = 86_400_000;
const policy = { afterMs: 5 * dayMs, failuresMin: 3 };
const after = (
  steps: readonly (readonly [day: number, result: 'worked' | 'failed' | 'gone'])[],
): EndpointHealth =>
  steps.reduce(
    (health, [day, result]) => decideHealth(health, result, { policy, nowMs: day * dayMs }),
    healthy,
  );

test('an endpoint that failed for days without a success is disabled, with the reason', () => {
  const health = after([
    [1, 'failed'],
    [3, 'failed'],
    [6, 'failed'],
  ]);
  assert.deepEqual(health.disabled, {
    atMs: 6 * dayMs,
    reason: '3 failures over 5 days without a success',
  });
});

test('one success resets the failures', () => {
  const steps = [
    [1, 'failed'],
    [5.9, 'worked'],
    [6, 'failed'],
    [8, 'failed'],
    [10, 'failed'],
  ] as const;
  assert.equal(after(steps).disabled, undefined);
  assert.deepEqual(after(steps.slice(0, 2)), healthy);
});

test('two failures in a quiet week prove nothing', () => {
  assert.equal(
    after([
      [1, 'failed'],
      [9, 'failed'],
    ]).disabled,
    undefined,
  );
});

test('410 disables immediately, until a person enables the endpoint again', () => {
  const disabled = after([[1, 'gone']]);
  assert.match(disabled.disabled?.reason ?? '', /410/);
  assert.equal(decideHealth(disabled, 'worked', { policy, nowMs: 2 * dayMs }), disabled);
});

test('over any history: disabled exactly when the last success is long enough ago', () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 0, max: 3 * dayMs }),
    worked: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let health = healthy;
      let nowMs = 0;
      let failures: number[] = [];
      for (const { pauseMs, worked } of steps) {
        nowMs += pauseMs;
        failures = worked ? [] : [...failures, nowMs];
        health = decideHealth(health, worked ? 'worked' : 'failed', { policy, nowMs });
        const [since = nowMs] = failures;
        const isOver = failures.length >= 3 && nowMs - since >= policy.afterMs;
        assert.equal(health.disabled !== undefined, isOver);
        if (isOver) return;
      }
    }),
  );
});

const store = memoryEndpointHealth();
for (const { name, run } of endpointHealthConformance({ store })) {
  test(`endpoint health in memory: ${name}`, run);
}

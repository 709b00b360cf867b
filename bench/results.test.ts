import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CaseRounds, Round } from './benchmark.ts';
import { judgeGoals, ratiosOf, resultsOf, spreadOf } from './results.ts';

function measured(subjects: Readonly<Record<string, readonly Round[]>>): CaseRounds {
  return {
    case: 'work',
    goals: [],
    subjects: Object.entries(subjects).map(([subject, rounds]) => ({ subject, rounds })),
  };
}

test('publishes medians with four digits, and only for measured values', () => {
  const results = resultsOf(
    measured({
      millrace: [{ perSecond: 1_234_567 }, { perSecond: 1 }, { perSecond: 2_000_000 }],
    }),
  );
  assert.deepEqual(results, [{ case: 'work', subject: 'millrace', perSecond: 1_235_000 }]);
});

test('divides our throughput by theirs', () => {
  const rounds = measured({ millrace: [{ perSecond: 300 }], ajv: [{ perSecond: 200 }] });
  assert.deepEqual(ratiosOf(resultsOf(rounds)), [{ case: 'work', vs: 'ajv', ratio: 1.5 }]);
});

test('divides their latency by ours, at both percentiles', () => {
  const rounds = measured({
    bullmq: [{ p50Ms: 3, p99Ms: 8 }],
    millrace: [{ p50Ms: 2, p99Ms: 16 }],
  });
  assert.deepEqual(ratiosOf(resultsOf(rounds)), [
    { case: 'work', vs: 'bullmq', ratio: 1.5 },
    { case: 'work', vs: 'bullmq (p99)', ratio: 0.5 },
  ]);
});

test('divides the memory of the peer by the memory of Millrace', () => {
  const rounds = measured({ millrace: [{ rssMiB: 50 }], peer: [{ rssMiB: 100 }] });
  assert.deepEqual(ratiosOf(resultsOf(rounds)), [{ case: 'work', vs: 'peer', ratio: 2 }]);
});

test('has no ratios for a case without Millrace', () => {
  assert.deepEqual(ratiosOf(resultsOf(measured({ a: [{ rssMiB: 1 }], b: [{ rssMiB: 2 }] }))), []);
});

test('reports goals as met, not met or not measured', () => {
  const results = resultsOf(
    measured({ millrace: [{ p50Ms: 10, p99Ms: 20 }], ajv: [{ p50Ms: 12, p99Ms: 20 }] }),
  );
  const goals = [
    { vs: 'ajv', ratioMin: 1.2 },
    { vs: 'ajv', ratioMin: 1.3 },
    { vs: 'zod', ratioMin: 1 },
    { p50MsMax: 10 },
    { p50MsMax: 9 },
    { p99MsMax: 20 },
    { p99MsMax: 19 },
  ];
  assert.deepEqual(
    judgeGoals(goals, results).map(({ met, value }) => [met, value]),
    [
      [true, 1.2],
      [false, 1.2],
      [false, undefined],
      [true, 10],
      [false, 10],
      [true, 20],
      [false, 20],
    ],
  );
});

test('shows the larger spread of two percentiles', () => {
  const rounds = [
    { p50Ms: 1, p99Ms: 10 },
    { p50Ms: 1, p99Ms: 10 },
    { p50Ms: 1, p99Ms: 15 },
  ];
  assert.equal(spreadOf({ subject: 'millrace', rounds }), 0.5);
});

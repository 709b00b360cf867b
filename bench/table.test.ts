import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alignColumns, formatNumber, renderCase } from './table.ts';

test('aligns text to the left and numbers to the right', () => {
  assert.deepEqual(
    alignColumns([
      ['', 'per second', 'ratio'],
      ['millrace', '1,000', ''],
      ['ajv', '90', '11.1×'],
    ]),
    ['          per second  ratio', 'millrace       1,000', 'ajv               90  11.1×'],
  );
});

test('writes large numbers without decimals and small ones with three digits', () => {
  assert.equal(formatNumber(1_234_567.8), '1,234,568');
  assert.equal(formatNumber(0.012345), '0.0123');
  assert.equal(formatNumber(1.5), '1.50');
  assert.equal(formatNumber(undefined), '–');
});

test('shows each subject compared with Millrace, and the outcome of the goals', () => {
  const text = renderCase({
    case: 'validate envelope',
    goals: [
      { vs: 'ajv', ratioMin: 1 },
      { vs: 'zod', ratioMin: 1 },
    ],
    subjects: [
      { subject: 'millrace', rounds: [{ perSecond: 1_000 }, { perSecond: 1_100 }] },
      { subject: 'ajv', rounds: [{ perSecond: 2_100 }, { perSecond: 2_100 }] },
    ],
  });
  assert.equal(
    text,
    [
      'validate envelope (median of 2)',
      '            per second  spread   ratio',
      '  millrace       1,050    ±5 %',
      '  ajv            2,100    ±0 %  0.500×',
      '  goal: ratio >= 1 vs ajv: not met (0.500)',
      '  goal: ratio >= 1 vs zod: not measured',
    ].join('\n'),
  );
});

test('shows which subject had a smaller batch', () => {
  const text = renderCase({
    case: 'drain 20k',
    goals: [],
    subjects: [
      { subject: 'millrace', rounds: [{ perSecond: 40_000 }] },
      { subject: 'naive', batch: 5_000, rounds: [{ perSecond: 400 }] },
    ],
  });
  assert.match(text, /\n {2}naive: 5,000 in each round$/);
});

test('shows both percentiles and both of their ratios', () => {
  const text = renderCase({
    case: 'enqueue to start',
    goals: [],
    subjects: [
      { subject: 'millrace', rounds: [{ p50Ms: 0.4, p99Ms: 1.2 }] },
      { subject: 'bullmq', rounds: [{ p50Ms: 1, p99Ms: 4.2 }] },
    ],
  });
  assert.match(text, /p50 ms {2}p99 ms {2}spread/);
  assert.match(text, /bullmq +1\.00 +4\.20 +±0 % +2\.50× \/ 3\.50×/);
});

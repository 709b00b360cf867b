// The pure parts of the console.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { ratesBetween } from '../../console/src/lib/rates.ts';
import { attentionOf } from '../../console/src/lib/attention.ts';
import { durationText, rateText } from '../../console/src/lib/format.ts';
import { traceAxis } from '../../console/src/lib/trace-axis.ts';
import { consoleApiTypes } from '../../tools/console-api.ts';

test('the types of the API are those of the OpenAPI document (npm run generate)', async () => {
  const file = new URL('../../console/src/api.gen.ts', import.meta.url);
  assert.equal(await readFile(file, 'utf8'), await consoleApiTypes());
});

test('durations and rates are short', () => {
  const durations = [0.4, 12, 1_500, 59_000, 61_000, 7_260_000, 273_600_000];
  assert.deepEqual(durations.map(durationText), [
    '< 1 ms',
    '12 ms',
    '1.5 s',
    '59 s',
    '1 min 1 s',
    '2 h 1 min',
    '3 d 4 h',
  ]);
  assert.deepEqual([0, 0.04, 0.5, 3.25, 1_204, 120_000].map(rateText), [
    '0',
    '< 0.1',
    '0.5',
    '3.3',
    '1,204',
    '120K',
  ]);
});

describe('the time axis of a trace', () => {
  test('spreads a short flow over the whole width', () => {
    const axis = traceAxis([
      { fromMs: 0, toMs: 4 },
      { fromMs: 10, toMs: 20 },
    ]);
    assert.deepEqual([axis.gaps, axis.at(0), axis.at(10), axis.at(20)], [[], 0, 50, 100]);
  });

  test('folds a long idle time, and keeps the order of times', () => {
    const day = 86_400_000;
    const axis = traceAxis([
      { fromMs: 0, toMs: 20 },
      { fromMs: day, toMs: day + 20 },
    ]);
    assert.deepEqual(
      axis.gaps.map(({ fromMs, toMs, left }) => [fromMs, toMs, Math.round(left)]),
      [[20, day, 47]],
    );
    const places = [0, 20, day / 2, day, day + 20].map((ms) => Math.round(axis.at(ms)));
    assert.deepEqual(places, [0, 47, 50, 53, 100]);
  });

  test('needs no times', () => assert.equal(traceAxis([]).at(0), 0));
});

test('what fails for good comes before what is late, paused or not shared', () => {
  const subscription = {
    state: 'running',
    shards: 1,
    workers: 1,
    deadLetters: 0,
    waiting: 0,
    position: '',
    head: '',
    behind: 0,
    unit: 'events',
    seconds: 0,
  } as const;
  const found = attentionOf(
    {
      at: '',
      head: '',
      series: [],
      failing: [],
      subscriptions: [
        { ...subscription, subscription: 'late', seconds: 90 },
        { ...subscription, subscription: 'dead', deadLetters: 2, waiting: 3 },
        { ...subscription, subscription: 'paused', state: 'paused' },
      ],
      failures: { 'dead-letter': 2, delivery: 1, job: 0, bus: 0, saga: 1 },
      outbox: {
        counts: { PENDING: 0, CLAIMED: 0, SENT: 0, FAILED: 1, DEAD: 0, DISCARDED: 0 },
        paused: [],
      },
    },
    [],
  );
  assert.deepEqual(
    found.map(({ subject, text }) => `${subject}: ${text}`),
    [
      'dead: 2 dead letters; 3 events of their streams wait',
      'outbox: 1 message failed and will be tried again',
      'sagas: 1 parked saga',
      'late: is 1 min 30 s behind',
      'paused: is paused; its events are not processed',
    ],
  );
});

test('the rate of a subscription is the distance of its positions by time', () => {
  const at = (atMs: number, position: string) => ({ atMs, positions: new Map([['a', position]]) });
  const before = at(1_000, '00000000000000f8');
  assert.deepEqual([...ratesBetween(before, at(3_000, '0000000000000110'))], [['a', 12]]);
  assert.deepEqual([...ratesBetween(undefined, before)], []);
  assert.deepEqual([...ratesBetween(before, { ...before, atMs: 2_000 })], [['a', 0]]);
});

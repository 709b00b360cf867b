import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCron } from './cron.ts';

function ticks(expression: string, timeZone: string, from: string, count: number): string[] {
  const schedule = parseCron(expression, timeZone);
  const found: string[] = [];
  let at: number | undefined = Date.parse(from);
  for (let n = 0; n < count; n += 1) {
    at = schedule.next(at);
    if (at === undefined) break;
    found.push(new Date(at).toISOString().slice(0, 16));
  }
  return found;
}

test('ticks follow lists, ranges, steps and names', () => {
  assert.deepEqual(ticks('*/20 8-9 * * *', 'UTC', '2026-01-01T08:50:00Z', 3), [
    '2026-01-01T09:00',
    '2026-01-01T09:20',
    '2026-01-01T09:40',
  ]);
  assert.deepEqual(ticks('0 0 1 jan,jul *', 'UTC', '2026-01-01T00:00:00Z', 2), [
    '2026-07-01T00:00',
    '2027-01-01T00:00',
  ]);
  assert.deepEqual(ticks('0 12 * * sun', 'UTC', '2026-02-14T00:00:00Z', 2), [
    '2026-02-15T12:00',
    '2026-02-22T12:00',
  ]);
  assert.deepEqual(ticks('0 12 * * 7', 'UTC', '2026-02-14T00:00:00Z', 1), ['2026-02-15T12:00']);
  assert.deepEqual(ticks('50/5 0 1 1 *', 'UTC', '2026-01-01T00:00:00Z', 3), [
    '2026-01-01T00:50',
    '2026-01-01T00:55',
    '2027-01-01T00:50',
  ]);
  assert.deepEqual(ticks('0 0 * * fri/2', 'UTC', '2026-02-12T00:00:00Z', 2), [
    '2026-02-13T00:00',
    '2026-02-15T00:00',
  ]);
});

test('a tick is strictly after the given time, to the millisecond', () => {
  const schedule = parseCron('* * * * *');
  const after = [0, 1, 59_999, 60_000].map((ms) => schedule.next(ms));
  assert.deepEqual(after, [60_000, 60_000, 60_000, 120_000]);
});

test('if both day fields are restricted, one match suffices; a step of * restricts none', () => {
  assert.deepEqual(ticks('0 0 13 * fri', 'UTC', '2026-02-07T00:00:00Z', 2), [
    '2026-02-13T00:00',
    '2026-02-20T00:00',
  ]);
  assert.deepEqual(ticks('0 0 */2 * fri', 'UTC', '2026-02-07T00:00:00Z', 2), [
    '2026-02-13T00:00',
    '2026-02-27T00:00',
  ]);
});

test('ticks follow the wall clock of the time zone, in summer and in winter', () => {
  assert.deepEqual(ticks('30 7 * * *', 'Europe/Berlin', '2026-03-28T00:00:00Z', 3), [
    '2026-03-28T06:30',
    '2026-03-29T05:30',
    '2026-03-30T05:30',
  ]);
  assert.deepEqual(ticks('0 0 * * *', 'Asia/Kolkata', '2026-01-01T00:00:00Z', 1), [
    '2026-01-01T18:30',
  ]);
});

test('a time in the gap of a clock change fires right after the gap, once', () => {
  assert.deepEqual(ticks('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2), [
    '2026-03-29T01:00',
    '2026-03-30T00:30',
  ]);
  // Each time of a list also fires after the gap; an interval skips the gap.
  assert.deepEqual(ticks('0,30 2,14 * * *', 'Europe/Berlin', '2026-03-28T14:00:00Z', 2), [
    '2026-03-29T01:00',
    '2026-03-29T12:00',
  ]);
  assert.deepEqual(ticks('30 1-3 * * *', 'Europe/Berlin', '2026-03-28T14:00:00Z', 3), [
    '2026-03-29T00:30',
    '2026-03-29T01:30',
    '2026-03-29T23:30',
  ]);
});

test('a repeated time fires once, an hourly schedule in both hours', () => {
  assert.deepEqual(ticks('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2), [
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ]);
  assert.deepEqual(ticks('30 2,14 * * *', 'Europe/Berlin', '2026-10-25T00:00:00Z', 2), [
    '2026-10-25T00:30',
    '2026-10-25T13:30',
  ]);
  assert.deepEqual(ticks('30 * * * *', 'Europe/Berlin', '2026-10-25T00:00:00Z', 3), [
    '2026-10-25T00:30',
    '2026-10-25T01:30',
    '2026-10-25T02:30',
  ]);
});

test('February 29 has ticks and February 30 has none', () => {
  assert.deepEqual(ticks('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', 1), ['2028-02-29T00:00']);
  assert.deepEqual(ticks('0 0 30 2 *', 'UTC', '2026-01-01T00:00:00Z', 1), []);
});

test('invalid expressions and unknown time zones are rejected', () => {
  for (const bad of [
    '',
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    '*/0 * * * *',
    '5-1 * * * *',
    'x * * * *',
    '1, * * * *',
    '/5 * * * *',
    '0 0 L * *',
    '0 0 * * fri#2',
    '@daily',
    '* * * * * *',
  ]) {
    assert.throws(() => parseCron(bad), { code: 'TASK_INVALID' }, bad);
  }
  assert.throws(() => parseCron('* * * * *', 'Mars/Olympus'), { code: 'TASK_INVALID' });
});

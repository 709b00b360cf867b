import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoDuration, parseLongDuration } from './go-duration.ts';

test('durations are parsed as Go parses them', () => {
  const read = (text: string): number | undefined => parseGoDuration(text);
  assert.deepEqual(
    ['1h30m', '1.5h', '-2s', '0', '300ms', '.5s'].map(read),
    [5_400_000, 5_400_000, -2_000, 0, 300, 500],
  );
  assert.deepEqual(['2d', '', '5', 'h', '1h 30m'].map(read), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual(
    ['2d', '3 days', '10 min', '5 secs'].map(parseLongDuration),
    [172_800_000, 259_200_000, 600_000, 5_000],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  isEndless,
  quietUntil,
  weekdays,
  type QuietHours,
  type QuietWindow,
} from './quiet-hours.ts';
import { propertyRuns } from './testing/property-runs.ts';
import { firstInstantOf, lastInstantOf } from 'millrace/foundation';

const zones = Intl.supportedValuesOf('timeZone');
const zone = fc.constantFrom(...zones);
const instant = fc.integer({ min: Date.UTC(1995, 0), max: Date.UTC(2037, 11) });
/** Within two days of a clock change of the zone. */
const nearChange = fc
  .tuple(zone, instant, fc.integer({ min: -48 * 60, max: 48 * 60 }))
  .map(([timeZone, atMs, minutes]) => {
    const at = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone);
    const change = at.getTimeZoneTransition('next')?.epochMilliseconds ?? atMs;
    return { timeZone, atMs: change + minutes * 60_000 };
  });
const time = fc
  .integer({ min: 0, max: 1_439 })
  .map((minute) => new Date(minute * 60_000).toISOString().slice(11, 16));
const quietWindow: fc.Arbitrary<QuietWindow> = fc.record(
  { from: time, to: time, days: fc.subarray([...weekdays], { minLength: 1 }) },
  { requiredKeys: ['from', 'to'] },
);

function plainAt(timeZone: string, atMs: number): Temporal.PlainDateTime {
  return Temporal.Instant.fromEpochMilliseconds(atMs)
    .toZonedDateTimeISO(timeZone)
    .toPlainDateTime();
}

/** The definition: at least one window has started on the wall clock and has not ended. */
function isQuiet({ timeZone, windows }: QuietHours, atMs: number): boolean {
  const today = plainAt(timeZone, atMs).toPlainDate();
  return windows.some(({ from, to, days }) =>
    [-2, -1, 0].some((offset) => {
      const day = today.add({ days: offset });
      if (days !== undefined && !days.includes(weekdays[day.dayOfWeek % 7] ?? 'sun')) return false;
      const start = day.toPlainDateTime(from);
      const end = (to > from ? day : day.add({ days: 1 })).toPlainDateTime(to);
      const asUtc = (wall: Temporal.PlainDateTime): number =>
        wall.toZonedDateTime('UTC').epochMilliseconds;
      return (
        firstInstantOf(timeZone, asUtc(start)) <= atMs && atMs < lastInstantOf(timeZone, asUtc(end))
      );
    }),
  );
}

test('quiet time ends at the first instant that is in no window, in every zone and around every clock change', () => {
  const hours = fc.record({
    at: fc.oneof(nearChange, fc.record({ timeZone: zone, atMs: instant })),
    windows: fc.array(quietWindow, { maxLength: 4 }),
  });
  fc.assert(
    fc.property(hours, ({ at: { timeZone, atMs }, windows }) => {
      fc.pre(!isEndless(windows));
      const rules = { timeZone, windows };
      const untilMs = quietUntil(rules, atMs);
      assert.equal(untilMs !== undefined, isQuiet(rules, atMs));
      if (untilMs === undefined) return;
      assert.ok(untilMs > atMs && !isQuiet(rules, untilMs));
      assert.ok(isQuiet(rules, untilMs - 1));
      for (let part = 1; part < 20; part += 1) {
        assert.ok(isQuiet(rules, atMs + Math.floor(((untilMs - 1 - atMs) * part) / 20)));
      }
    }),
    { numRuns: propertyRuns(200) },
  );
});

const berlin = (from: string, to: string): QuietHours => ({
  timeZone: 'Europe/Berlin',
  windows: [{ from, to }],
});
const ends = (hours: QuietHours, at: string): string | undefined => {
  const untilMs = quietUntil(hours, Date.parse(at));
  return untilMs === undefined ? undefined : new Date(untilMs).toISOString();
};

test('a night is an hour shorter in spring and an hour longer in autumn', () => {
  const night = berlin('22:00', '07:00');
  assert.equal(ends(night, '2026-01-10T22:00:00Z'), '2026-01-11T06:00:00.000Z');
  assert.equal(ends(night, '2026-03-28T22:00:00Z'), '2026-03-29T05:00:00.000Z');
  assert.equal(ends(night, '2026-10-24T22:00:00Z'), '2026-10-25T06:00:00.000Z');
  assert.equal(ends(night, '2026-01-10T20:59:59Z'), undefined);
  assert.equal(ends(night, '2026-01-10T21:00:00Z'), '2026-01-11T06:00:00.000Z');
  assert.equal(ends(night, '2026-01-11T06:00:00Z'), undefined);
});

test('quiet hours that end in a skipped hour end at the clock change, and in a repeated hour at its second occurrence', () => {
  assert.equal(ends(berlin('22:00', '02:30'), '2026-03-28T23:00:00Z'), '2026-03-29T01:00:00.000Z');
  assert.equal(ends(berlin('22:00', '02:30'), '2026-10-25T00:40:00Z'), '2026-10-25T01:30:00.000Z');
  assert.equal(ends(berlin('02:10', '02:50'), '2026-03-29T01:00:00Z'), undefined);
});

test('adjacent windows count as one, and days select when a window starts', () => {
  const weekend: QuietHours = {
    timeZone: 'America/New_York',
    windows: [
      { from: '20:00', to: '00:00', days: ['fri'] },
      { from: '00:00', to: '00:00', days: ['sat', 'sun'] },
      { from: '00:00', to: '06:30', days: ['mon'] },
    ],
  };
  assert.equal(ends(weekend, '2026-11-14T01:00:00Z'), '2026-11-16T11:30:00.000Z');
  assert.equal(ends(weekend, '2026-11-13T01:00:00Z'), undefined);
});

test('windows that cover every minute of the week are endless', () => {
  assert.equal(isEndless([{ from: '00:00', to: '00:00' }]), true);
  assert.equal(
    isEndless([
      { from: '08:00', to: '20:00' },
      { from: '20:00', to: '08:00' },
    ]),
    true,
  );
  assert.equal(isEndless([{ from: '00:00', to: '23:59' }]), false);
  assert.equal(isEndless([{ from: '00:00', to: '00:00', days: ['mon'] }]), false);
  assert.equal(isEndless([]), false);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../testing/property-runs.ts';
import { firstInstantOf, isTimeZone, lastInstantOf, wallTimeAt } from './time-zone.ts';

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

function plainAt(timeZone: string, atMs: number): Temporal.PlainDateTime {
  return Temporal.Instant.fromEpochMilliseconds(atMs)
    .toZonedDateTimeISO(timeZone)
    .toPlainDateTime();
}

test('a wall clock shows the same as Temporal, in every zone', () => {
  fc.assert(
    fc.property(fc.oneof(nearChange, fc.record({ timeZone: zone, atMs: instant })), (given) => {
      const { timeZone, atMs } = given;
      const shown = new Date(wallTimeAt(timeZone, atMs)).toISOString().slice(0, 19);
      assert.equal(shown, plainAt(timeZone, atMs).toString({ smallestUnit: 'second' }));
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

test('a wall time is the instant that Temporal finds: the earlier, the later, or the clock change', () => {
  fc.assert(
    fc.property(nearChange, fc.integer({ min: -180, max: 180 }), ({ timeZone, atMs }, minutes) => {
      const wallMs = Math.floor(atMs / 60_000) * 60_000 + minutes * 60_000;
      const wall = Temporal.PlainDateTime.from(new Date(wallMs).toISOString().slice(0, 19));
      const by = (disambiguation: 'earlier' | 'later'): Temporal.ZonedDateTime =>
        wall.toZonedDateTime(timeZone, { disambiguation });
      const exists = by('later').toPlainDateTime().equals(wall);
      if (exists) {
        assert.equal(firstInstantOf(timeZone, wallMs), by('earlier').epochMilliseconds);
        assert.equal(lastInstantOf(timeZone, wallMs), by('later').epochMilliseconds);
      } else {
        const change = by('earlier').getTimeZoneTransition('next')?.epochMilliseconds;
        assert.deepEqual(
          [firstInstantOf(timeZone, wallMs), lastInstantOf(timeZone, wallMs)],
          [change, change],
        );
      }
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

test('a wall clock shows the years before 100 and before Christ', () => {
  const shown = (at: string): string =>
    new Date(wallTimeAt('Asia/Kolkata', Date.parse(at))).toISOString();
  assert.match(shown('0001-01-01T00:00:00.005Z'), /^0001-01-01T05:.*\.005Z$/);
  assert.match(shown('-000001-11-28T00:00:00Z'), /^-000001-11-28T05:/);
});

test('only names of time zones are accepted, in any case', () => {
  assert.deepEqual(['Europe/Berlin', 'UTC', 'europe/berlin', 'Mars/Olympus', ''].map(isTimeZone), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { createLaneFloors, type LaneScan, type LaneFloors } from './lane-floors.ts';

const nothing = Array.from({ length: outboxLimits.lanes }, () => 0);

type Rows = readonly { readonly lane: number; readonly seq: number }[];

/** The last scan, whose result is not reported yet. */
const scans = new WeakMap<LaneFloors, LaneScan>();

function next(floors: LaneFloors): LaneScan {
  const before = scans.get(floors);
  if (before !== undefined) floors.failed(before);
  const scan = floors.next();
  scans.set(floors, scan);
  return scan;
}

function claimed(floors: LaneFloors, rows: Rows, isFull: boolean): void {
  floors.claimed(scans.get(floors) ?? floors.next(), rows, isFull);
  scans.delete(floors);
}

function floorOf(floors: LaneFloors, lane: number): number | undefined {
  const { lanes, from } = next(floors);
  return from[lanes.indexOf(lane)];
}

test('rows of a full claim are not scanned again within one second', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  assert.deepEqual(next(floors).from, nothing);
  claimed(
    floors,
    [
      { lane: 3, seq: 7 },
      { lane: 3, seq: 5 },
      { lane: 9, seq: 6 },
    ],
    true,
  );
  assert.equal(next(floors).lanes.length, outboxLimits.lanes);
  assert.equal(floorOf(floors, 3), 8);
  assert.equal(floorOf(floors, 9), 7);
  assert.equal(floorOf(floors, 4), 0);
  await clock.advance(1_000);
  assert.deepEqual(next(floors).from, nothing);
});

test('a row released while a claim runs stays claimable', () => {
  const floors = createLaneFloors(fakeClock());
  next(floors);
  floors.lower({ lane: 3, seq: 12 });
  claimed(floors, [{ lane: 3, seq: 70 }], true);
  assert.equal(floorOf(floors, 3), 12);
  claimed(floors, [{ lane: 3, seq: 12 }], true);
  assert.equal(floorOf(floors, 3), 13);
});

test('a released row lowers the floor of its lane, and a claim below its limit all floors', () => {
  const floors = createLaneFloors(fakeClock());
  next(floors);
  claimed(
    floors,
    [
      { lane: 3, seq: 70 },
      { lane: 4, seq: 80 },
    ],
    true,
  );
  floors.lower({ lane: 3, seq: 12 });
  assert.equal(floorOf(floors, 3), 12);
  assert.equal(floorOf(floors, 4), 81);
  claimed(floors, [{ lane: 3, seq: 12 }], false);
  assert.deepEqual(next(floors).lanes, []);
  claimed(floors, [], true);
  assert.deepEqual(next(floors).from, nothing);
});

test('slow full scans run less often', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  next(floors);
  await clock.advance(500);
  claimed(floors, [{ lane: 0, seq: 1 }], true);
  await clock.advance(9_000);
  assert.equal(floorOf(floors, 0), 2);
  await clock.advance(1_000);
  assert.equal(floorOf(floors, 0), 0);
});

test('an idle period does not count as a slow full scan', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  next(floors);
  claimed(floors, [], false);
  await clock.advance(3_600_000);
  assert.deepEqual(next(floors).lanes, []);
  claimed(floors, [{ lane: 0, seq: 1 }], true);
  assert.equal(floorOf(floors, 0), 2);
  await clock.advance(1_000);
  assert.equal(floorOf(floors, 0), 0);
});

test('every lane with messages comes first in turn', () => {
  for (const busy of [[5], [5, 6, 40], nothing.map((_zero, lane) => lane)]) {
    const floors = createLaneFloors(fakeClock());
    const begun = new Set<number>();
    for (let round = 0; round < 200; round += 1) {
      const { lanes } = next(floors);
      const first = lanes.find((lane) => busy.includes(lane));
      assert.ok(first !== undefined);
      begun.add(first);
      claimed(floors, [{ lane: first, seq: round }], true);
    }
    assert.deepEqual(begun, new Set(busy));
  }
});

test('a row released while two claims run is passed by neither', () => {
  const floors = createLaneFloors(fakeClock());
  const [one, two] = [floors.next(), floors.next()];
  floors.lower({ lane: 3, seq: 12 });
  floors.lower({ lane: 4, seq: 13 });
  floors.claimed(one, [{ lane: 3, seq: 70 }], true);
  floors.claimed(two, [{ lane: 4, seq: 80 }], true);
  assert.deepEqual([floorOf(floors, 3), floorOf(floors, 4)], [12, 13]);

  const [three, four] = [floors.next(), floors.next()];
  floors.reset();
  floors.claimed(three, [{ lane: 3, seq: 90 }], true);
  floors.claimed(four, [{ lane: 4, seq: 91 }], true);
  assert.deepEqual([floorOf(floors, 3), floorOf(floors, 4)], [0, 0]);
});

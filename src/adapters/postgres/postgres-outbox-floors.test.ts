import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createLaneFloors, type LaneAsk, type LaneFloors } from './postgres-outbox-floors.ts';

const nothing = Array.from({ length: outboxLimits.lanes }, () => 0);

type Rows = readonly { readonly lane: number; readonly seq: number }[];

/** The last one that was asked for, which has no answer yet. */
const asks = new WeakMap<LaneFloors, LaneAsk>();

function next(floors: LaneFloors): LaneAsk {
  const before = asks.get(floors);
  if (before !== undefined) floors.failed(before);
  const ask = floors.next();
  asks.set(floors, ask);
  return ask;
}

function claimed(floors: LaneFloors, rows: Rows, isFull: boolean): void {
  floors.claimed(asks.get(floors) ?? floors.next(), rows, isFull);
  asks.delete(floors);
}

function floorOf(floors: LaneFloors, lane: number): number | undefined {
  const { lanes, from } = next(floors);
  return from[lanes.indexOf(lane)];
}

test('a full claim is not walked past again, until a second is over', async () => {
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

test('what is freed while a claim is under way is not taken for claimed', () => {
  const floors = createLaneFloors(fakeClock());
  next(floors);
  floors.lower({ lane: 3, seq: 12 });
  claimed(floors, [{ lane: 3, seq: 70 }], true);
  assert.equal(floorOf(floors, 3), 12);
  claimed(floors, [{ lane: 3, seq: 12 }], true);
  assert.equal(floorOf(floors, 3), 13);
});

test('what may be claimed again lowers the floor of its lane, and a claim that was not full all of them', () => {
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

test('walks that take long are made less often', async () => {
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

test('a quiet time is not taken for a long walk', async () => {
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

test('every lane comes first in its turn, whichever of them have messages', () => {
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

test('beside another claim the other half of the lanes is asked, and both have their turns', () => {
  const floors = createLaneFloors(fakeClock());
  const begun = new Set<number>();
  let other = floors.next();
  assert.equal(other.isPart, false);
  floors.claimed(other, [{ lane: 0, seq: 1 }], true);
  other = floors.next();
  for (let round = 0; round < 400; round += 1) {
    const ask = floors.next();
    assert.equal(ask.isPart, true);
    if (other.isPart)
      assert.deepEqual(new Set([...ask.lanes, ...other.lanes]).size, nothing.length);
    const [lane = 0] = other.lanes;
    begun.add(lane);
    floors.claimed(other, [{ lane, seq: round }], true);
    other = ask;
  }
  assert.equal(begun.size, nothing.length);
  assert.equal(floors.next('whole').isPart, false);
});

test('a claim without an answer holds nobody to one half', () => {
  const floors = createLaneFloors(fakeClock());
  floors.failed(floors.next());
  assert.equal(floors.next().isPart, false);
});

test('what is freed while two claims are under way is past neither of them', () => {
  const floors = createLaneFloors(fakeClock());
  const [one, two] = [floors.next(), floors.next()];
  floors.lower({ lane: 3, seq: 12 });
  floors.lower({ lane: 4, seq: 13 });
  floors.claimed(one, [{ lane: 3, seq: 70 }], true);
  floors.claimed(two, [{ lane: 4, seq: 80 }], true);
  assert.deepEqual([floorOf(floors, 3), floorOf(floors, 4)], [12, 13]);

  const [three, four] = [floors.next('whole'), floors.next('whole')];
  floors.forget();
  floors.claimed(three, [{ lane: 3, seq: 90 }], true);
  floors.claimed(four, [{ lane: 4, seq: 91 }], true);
  assert.deepEqual([floorOf(floors, 3), floorOf(floors, 4)], [0, 0]);
});

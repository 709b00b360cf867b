import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createLaneFloors } from './postgres-outbox-floors.ts';

const nothing = Array.from({ length: outboxLimits.lanes }, () => 0);

function floorOf(floors: ReturnType<typeof createLaneFloors>, lane: number): number | undefined {
  const { lanes, from } = floors.next();
  return from[lanes.indexOf(lane)];
}

test('a full claim is not walked past again, until a second is over', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  assert.deepEqual(floors.next().from, nothing);
  floors.claimed(
    [
      { lane: 3, seq: 7 },
      { lane: 3, seq: 5 },
      { lane: 9, seq: 6 },
    ],
    true,
  );
  assert.equal(floors.next().lanes.length, outboxLimits.lanes);
  assert.equal(floorOf(floors, 3), 8);
  assert.equal(floorOf(floors, 9), 7);
  assert.equal(floorOf(floors, 4), 0);
  await clock.advance(1_000);
  assert.deepEqual(floors.next().from, nothing);
});

test('what is freed while a claim is under way is not taken for claimed', () => {
  const floors = createLaneFloors(fakeClock());
  floors.next();
  floors.lower({ lane: 3, seq: 12 });
  floors.claimed([{ lane: 3, seq: 70 }], true);
  assert.equal(floorOf(floors, 3), 12);
  floors.claimed([{ lane: 3, seq: 12 }], true);
  assert.equal(floorOf(floors, 3), 13);
});

test('what may be claimed again lowers the floor of its lane, and a claim that was not full all of them', () => {
  const floors = createLaneFloors(fakeClock());
  floors.next();
  floors.claimed(
    [
      { lane: 3, seq: 70 },
      { lane: 4, seq: 80 },
    ],
    true,
  );
  floors.lower({ lane: 3, seq: 12 });
  assert.equal(floorOf(floors, 3), 12);
  assert.equal(floorOf(floors, 4), 81);
  floors.claimed([{ lane: 3, seq: 12 }], false);
  assert.deepEqual(floors.next(), { lanes: [], from: [] });
  floors.claimed([], true);
  assert.deepEqual(floors.next().from, nothing);
});

test('walks that take long are made less often', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  floors.next();
  await clock.advance(500);
  floors.claimed([{ lane: 0, seq: 1 }], true);
  await clock.advance(9_000);
  assert.equal(floorOf(floors, 0), 2);
  await clock.advance(1_000);
  assert.equal(floorOf(floors, 0), 0);
});

test('a quiet time is not taken for a long walk', async () => {
  const clock = fakeClock();
  const floors = createLaneFloors(clock);
  floors.next();
  floors.claimed([], false);
  await clock.advance(3_600_000);
  assert.deepEqual(floors.next().lanes, []);
  floors.claimed([{ lane: 0, seq: 1 }], true);
  assert.equal(floorOf(floors, 0), 2);
  await clock.advance(1_000);
  assert.equal(floorOf(floors, 0), 0);
});

test('every lane comes first in its turn, whichever of them have messages', () => {
  for (const busy of [[5], [5, 6, 40], nothing.map((_zero, lane) => lane)]) {
    const floors = createLaneFloors(fakeClock());
    const begun = new Set<number>();
    for (let round = 0; round < 200; round += 1) {
      const { lanes } = floors.next();
      const first = lanes.find((lane) => busy.includes(lane));
      assert.ok(first !== undefined);
      begun.add(first);
      floors.claimed([{ lane: first, seq: round }], true);
    }
    assert.deepEqual(begun, new Set(busy));
  }
});

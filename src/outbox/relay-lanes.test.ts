import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LaneBatch } from './outbox-streams.ts';
import { createRelayLanes, type RelayLane } from './relay-lanes.ts';

const owned = (count: number) =>
  Array.from({ length: count }, (_, lane) => ({
    integrationType: 'kafka:payments',
    lane,
    epoch: 1,
    share: count,
  }));
const numbers = (lanes: readonly RelayLane[]): readonly number[] =>
  lanes.map(({ claim }) => claim.lane);
const batchOf = ({ claim }: RelayLane): LaneBatch => ({ claim, number: 1, items: [] });

test('a lane that is asked is nobody else’s to ask, and comes last when it had nothing', () => {
  const lanes = createRelayLanes();
  lanes.own(owned(3), 0);
  const asked = lanes.free(0).slice(0, 2);
  lanes.ask(asked);
  assert.deepEqual(numbers(lanes.free(0)), [2]);
  lanes.answered(asked);
  assert.deepEqual(numbers(lanes.free(0)), [2, 0, 1]);
});

test('a lane that gave something out while it was asked is not free when the answer is over', () => {
  const lanes = createRelayLanes();
  lanes.own(owned(2), 0);
  const asked = lanes.free(0);
  lanes.ask(asked);
  const [first] = asked;
  assert.ok(first !== undefined && lanes.giveOut(batchOf(first), 0) !== undefined);
  lanes.answered(asked);
  assert.deepEqual(numbers(lanes.free(0)), [1]);
});

test('a lane that is being asked is not given back to others', () => {
  const lanes = createRelayLanes();
  lanes.own(
    owned(2).map((each) => ({ ...each, share: 1 })),
    0,
  );
  lanes.ask(lanes.free(0).slice(0, 1));
  assert.deepEqual(
    lanes.takeSurplus().map(({ lane }) => lane),
    [1],
  );
});

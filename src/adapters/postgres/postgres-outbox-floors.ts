// Where claims begin. Below a lane's floor there are only rows that are done with, which the database
// would walk past each time until they are vacuumed.

import type { Clock } from '../../foundation/clock.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import type { Row } from './postgres-connection.ts';

export interface LaneFloors {
  /** The lanes in the order in which they are asked, and where each begins. */
  next(): Promise<{ readonly lanes: readonly number[]; readonly from: readonly number[] }>;
  /** What a claim got: full, and the lane of its last row. */
  claimed(isFull: boolean, lastLane: number): void;
  /** True once a second: what no full claim sees must be looked after all the same. */
  isUpkeepDue(): boolean;
}

/** A commit may come later than those with higher numbers: a floor is forgotten after so long. */
const floorMs = 1_000;

const none: readonly number[] = Array.from({ length: outboxLimits.lanes }, () => 0);

export function createLaneFloors(options: {
  readonly clock: Clock;
  readonly read: (lanes: readonly number[]) => Promise<readonly Row[]>;
}): LaneFloors {
  const { clock, read } = options;
  let floors = none;
  let first = 0;
  let wasFull = false;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let upkeepAtMs = clock.now();

  return {
    async next() {
      // Without floors, everything is seen: whenever there is little, and once a second.
      if (!wasFull) floors = none;
      else if (floors === none) {
        if (clock.now() - readAtMs >= floorMs) await readFloors();
      } else if (clock.now() - readAtMs >= floorMs) floors = none;
      const lanes = none.map((_zero, at) => (first + at) % outboxLimits.lanes);
      return { lanes, from: lanes.map((lane) => floors[lane] ?? 0) };
    },
    claimed(isFull, lastLane) {
      wasFull = isFull;
      if (lastLane >= 0) first = (lastLane + 1) % outboxLimits.lanes;
    },
    isUpkeepDue() {
      if (clock.now() - upkeepAtMs < floorMs) return false;
      upkeepAtMs = clock.now();
      return true;
    },
  };

  async function readFloors(): Promise<void> {
    const found = [...none];
    for (const [lane, seq] of await read(none.map((_zero, at) => at))) {
      found[Number(lane)] = Number(seq ?? 0);
    }
    floors = found;
    readAtMs = clock.now();
  }
}

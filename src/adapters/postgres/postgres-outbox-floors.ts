// Where claims begin. Below a lane's floor there is only what we have claimed or walked past before, which
// the database would walk past each time: rows under way, and those that are done with but not vacuumed.

import type { Clock } from '../../foundation/clock.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';

export interface LaneFloors {
  /**
   * The lanes in the order in which they are asked, and where each begins. None when the last claim got less
   * than it asked for: then there is little, and all of it is taken.
   */
  next(): { readonly lanes: readonly number[]; readonly from: readonly number[] };
  /** What a claim got, and whether that was all it asked for. */
  claimed(rows: readonly LaneRow[], isFull: boolean): void;
  /** There is one to claim again, below the floor or not. */
  lower(row: LaneRow): void;
  /** There may be any: the next claim looks at everything. */
  forget(): void;
  /** True once a second: what no full claim sees must be looked after all the same. */
  isUpkeepDue(): boolean;
}

interface LaneRow {
  readonly lane: number;
  readonly seq: number;
}

/** A commit may come later than those with higher numbers: floors are forgotten after so long. */
const floorMs = 1_000;
/** What walking without floors takes may be no more than this share of the time, up to a limit. */
const walkShare = 1 / 20;
const floorMsMax = 10_000;

export function createLaneFloors(clock: Clock): LaneFloors {
  const floors = Array.from({ length: outboxLimits.lanes }, () => 0);
  /** While a claim is under way, which does not see them yet and may go past them. */
  const lowered: LaneRow[] = [];
  let first = 0;
  let isQuiet = false;
  let isWalk = true;
  let walkAtMs = 0;
  let forgetAtMs = 0;
  let upkeepAtMs = clock.now();

  return {
    next() {
      const nowMs = clock.now();
      lowered.length = 0;
      if (isWalk || nowMs >= forgetAtMs) {
        floors.fill(0);
        isWalk = true;
        walkAtMs = nowMs;
      }
      if (isQuiet) return { lanes: [], from: [] };
      const lanes = floors.map((_floor, at) => (first + at) % outboxLimits.lanes);
      return { lanes, from: lanes.map((lane) => floors[lane] ?? 0) };
    },
    claimed(rows, isFull) {
      const nowMs = clock.now();
      const pauseMs = Math.min((nowMs - walkAtMs) / walkShare, floorMsMax);
      if (isWalk) forgetAtMs = nowMs + Math.max(floorMs, pauseMs);
      // Where there is little, everything is looked at.
      isQuiet = !isFull;
      isWalk = isQuiet;
      // The lanes behind the last one that had its turn come first the next time.
      let reached = -1;
      for (const { lane, seq } of rows) {
        floors[lane] = Math.max(floors[lane] ?? 0, seq + 1);
        reached = Math.max(reached, (lane - first + outboxLimits.lanes) % outboxLimits.lanes);
      }
      for (const { lane, seq } of lowered) floors[lane] = Math.min(floors[lane] ?? 0, seq);
      const step = reached === outboxLimits.lanes - 1 ? 1 : reached + 1;
      first = (first + step) % outboxLimits.lanes;
    },
    lower(row) {
      const { lane, seq } = row;
      lowered.push(row);
      floors[lane] = Math.min(floors[lane] ?? 0, seq);
    },
    forget() {
      isWalk = true;
    },
    isUpkeepDue() {
      if (clock.now() - upkeepAtMs < floorMs) return false;
      upkeepAtMs = clock.now();
      return true;
    },
  };
}

// Where claims begin. Below a lane's floor there is only what we have claimed or walked past before, which
// the database would walk past each time: rows under way, and those that are done with but not vacuumed.

import type { Clock } from '../../foundation/clock.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';

export interface LaneFloors {
  /**
   * What the next claim asks. Beside another one of ours it asks the other half of the lanes: the two would
   * meet in every row, and who comes second would have to look at each of them twice. `whole`: it asks all.
   */
  next(asked?: 'whole' | 'shared'): LaneAsk;
  /** What a claim got, and whether that was all it asked for. */
  claimed(ask: LaneAsk, rows: readonly LaneRow[], isFull: boolean): void;
  /** It got no answer. */
  failed(ask: LaneAsk): void;
  /** There is one to claim again, below the floor or not. */
  lower(row: LaneRow): void;
  /** There may be any: the next claim looks at everything. */
  forget(): void;
  /** True once a second: what no full claim sees must be looked after all the same. */
  isUpkeepDue(): boolean;
}

export interface LaneAsk {
  /**
   * The lanes in the order in which they are asked. None when the last claim got less than it asked for: then
   * there is little, and all of it is taken.
   */
  readonly lanes: readonly number[];
  /** Where each of them begins. */
  readonly from: readonly number[];
  /** Whether there may be more in lanes that it does not ask. */
  readonly isPart: boolean;
}

interface LaneRow {
  readonly lane: number;
  readonly seq: number;
}

interface Ask extends LaneAsk {
  readonly halves: readonly Half[];
  /** While it is under way, which does not see them yet and may go past them. */
  readonly lowered: LaneRow[];
}

/** The even lanes, or the odd ones. */
interface Half {
  readonly parity: number;
  isWalk: boolean;
  walkAtMs: number;
  forgetAtMs: number;
}

/** A commit may come later than those with higher numbers: floors are forgotten after so long. */
const floorMs = 1_000;
/** What walking without floors takes may be no more than this share of the time, up to a limit. */
const walkShare = 1 / 20;
const floorMsMax = 10_000;

export function createLaneFloors(clock: Clock): LaneFloors {
  const floors = Array.from({ length: outboxLimits.lanes }, () => 0);
  const halves: readonly Half[] = [0, 1].map((parity) => ({
    parity,
    isWalk: true,
    walkAtMs: 0,
    forgetAtMs: 0,
  }));
  const underWay = new Map<LaneAsk, Ask>();
  let first = 0;
  let isQuiet = false;
  let upkeepAtMs = clock.now();

  function halvesToAsk(): readonly Half[] {
    const others = [...underWay.values()];
    if (others.length === 0) return halves;
    const free = halves.filter((half) => !others.some((ask) => ask.halves.includes(half)));
    return free.length > 0 ? free : halves.slice(0, 1);
  }

  return {
    next(lanesAsked = 'shared') {
      const nowMs = clock.now();
      const asked = lanesAsked === 'whole' ? halves : halvesToAsk();
      for (const half of asked) {
        if (!half.isWalk && nowMs < half.forgetAtMs) continue;
        for (let lane = half.parity; lane < floors.length; lane += 2) floors[lane] = 0;
        half.isWalk = true;
        half.walkAtMs = nowMs;
      }
      const isPart = asked.length < halves.length;
      const parities = new Set(asked.map(({ parity }) => parity));
      const lanes =
        isQuiet && !isPart
          ? []
          : floors
              .map((_floor, at) => (first + at) % outboxLimits.lanes)
              .filter((lane) => parities.has(lane % 2));
      const from = lanes.map((lane) => floors[lane] ?? 0);
      const ask: Ask = { lanes, from, isPart, halves: asked, lowered: [] };
      underWay.set(ask, ask);
      return ask;
    },
    claimed(ask, rows, isFull) {
      const nowMs = clock.now();
      const { halves: asked = halves, lowered = [] } = underWay.get(ask) ?? {};
      underWay.delete(ask);
      // Of a half, less says nothing of the rest.
      if (isFull || !ask.isPart) isQuiet = !isFull;
      for (const half of asked) {
        const pauseMs = Math.min((nowMs - half.walkAtMs) / walkShare, floorMsMax);
        if (half.isWalk) half.forgetAtMs = nowMs + Math.max(floorMs, pauseMs);
        // Where there is little, everything is looked at.
        half.isWalk = !isFull;
      }
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
    failed: (ask) => void underWay.delete(ask),
    lower(row) {
      const { lane, seq } = row;
      for (const { lowered } of underWay.values()) lowered.push(row);
      floors[lane] = Math.min(floors[lane] ?? 0, seq);
    },
    forget() {
      for (const half of halves) half.isWalk = true;
      for (const { lowered } of underWay.values()) {
        lowered.push(...floors.keys().map((lane) => ({ lane, seq: 0 })));
      }
    },
    isUpkeepDue() {
      if (clock.now() - upkeepAtMs < floorMs) return false;
      upkeepAtMs = clock.now();
      return true;
    },
  };
}

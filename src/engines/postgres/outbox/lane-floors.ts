// Where claims start in each lane. All rows below the floor of a lane are claimed, or deleted and not vacuumed yet.
// Without floors, every claim would scan these rows again.

import type { Clock } from '../../../foundation/clock.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';

export interface LaneFloors {
  /**
   * The lanes and floors of the next claim. While another claim of this process runs, the next claim covers the other
   * half of the lanes. On the same lanes it would scan every row that the first claim has locked. `whole`: all lanes.
   */
  next(coverage?: 'whole' | 'shared'): LaneScan;
  /** Reports the claimed rows, and whether they reached the limit. */
  claimed(scan: LaneScan, rows: readonly LaneRow[], isFull: boolean): void;
  /** Reports that the claim failed. */
  failed(scan: LaneScan): void;
  /** Reports that a row can be claimed again, possibly below the floor. */
  lower(row: LaneRow): void;
  /** Reports that any row may be claimable again: the next claim scans all lanes from the start. */
  reset(): void;
  /** Returns true once a second: due messages must be promoted even while all claims are full. */
  isUpkeepDue(): boolean;
}

export interface LaneScan {
  /** The lanes in the order of their turns. Empty after a claim below its limit: one scan covers the short queue. */
  readonly lanes: readonly number[];
  /** The floor of each lane. */
  readonly from: readonly number[];
  /** Whether the scan omits lanes that may have more messages. */
  readonly isPart: boolean;
}

interface LaneRow {
  readonly lane: number;
  readonly seq: number;
}

interface RunningScan extends LaneScan {
  readonly halves: readonly Half[];
  /** Rows that became claimable during the scan: the scan may have passed them already. */
  readonly lowered: LaneRow[];
}

/** The even or the odd lanes. */
interface Half {
  readonly parity: number;
  /** Whether the current claim ignores the floors. */
  isFullScan: boolean;
  scannedAtMs: number;
  forgetAtMs: number;
}

/** A row may commit after rows with higher numbers, so floors are forgotten after this time. */
const floorMs = 1_000;
/** Full scans may take at most this share of the time, with pauses up to floorMsMax. */
const fullScanShare = 1 / 20;
const floorMsMax = 10_000;

export function createLaneFloors(clock: Clock): LaneFloors {
  const floors = Array.from({ length: outboxLimits.lanes }, () => 0);
  const halves: readonly Half[] = [0, 1].map((parity) => ({
    parity,
    isFullScan: true,
    scannedAtMs: 0,
    forgetAtMs: 0,
  }));
  const running = new Map<LaneScan, RunningScan>();
  let first = 0;
  let isQuiet = false;
  let upkeepAtMs = clock.now();

  function freeHalves(): readonly Half[] {
    const others = [...running.values()];
    if (others.length === 0) return halves;
    const free = halves.filter((half) => !others.some((scan) => scan.halves.includes(half)));
    return free.length > 0 ? free : halves.slice(0, 1);
  }

  return {
    next(coverage = 'shared') {
      const nowMs = clock.now();
      const covered = coverage === 'whole' ? halves : freeHalves();
      for (const half of covered) {
        if (!half.isFullScan && nowMs < half.forgetAtMs) continue;
        for (let lane = half.parity; lane < floors.length; lane += 2) floors[lane] = 0;
        half.isFullScan = true;
        half.scannedAtMs = nowMs;
      }
      const isPart = covered.length < halves.length;
      const parities = new Set(covered.map(({ parity }) => parity));
      const lanes =
        isQuiet && !isPart
          ? []
          : floors
              .map((_floor, at) => (first + at) % outboxLimits.lanes)
              .filter((lane) => parities.has(lane % 2));
      const from = lanes.map((lane) => floors[lane] ?? 0);
      const scan: RunningScan = { lanes, from, isPart, halves: covered, lowered: [] };
      running.set(scan, scan);
      return scan;
    },
    claimed(scan, rows, isFull) {
      const nowMs = clock.now();
      const { halves: covered = halves, lowered = [] } = running.get(scan) ?? {};
      running.delete(scan);
      // A partial scan below the limit does not show whether the other half has messages.
      if (isFull || !scan.isPart) isQuiet = !isFull;
      for (const half of covered) {
        const pauseMs = Math.min((nowMs - half.scannedAtMs) / fullScanShare, floorMsMax);
        if (half.isFullScan) half.forgetAtMs = nowMs + Math.max(floorMs, pauseMs);
        // A short queue is always scanned from the start.
        half.isFullScan = !isFull;
      }
      // The next claim starts after the last lane that had its turn.
      let reached = -1;
      for (const { lane, seq } of rows) {
        floors[lane] = Math.max(floors[lane] ?? 0, seq + 1);
        reached = Math.max(reached, (lane - first + outboxLimits.lanes) % outboxLimits.lanes);
      }
      for (const { lane, seq } of lowered) floors[lane] = Math.min(floors[lane] ?? 0, seq);
      const step = reached === outboxLimits.lanes - 1 ? 1 : reached + 1;
      first = (first + step) % outboxLimits.lanes;
    },
    failed: (scan) => void running.delete(scan),
    lower(row) {
      const { lane, seq } = row;
      for (const { lowered } of running.values()) lowered.push(row);
      floors[lane] = Math.min(floors[lane] ?? 0, seq);
    },
    reset() {
      for (const half of halves) half.isFullScan = true;
      for (const { lowered } of running.values()) {
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

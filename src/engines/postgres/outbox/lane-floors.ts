// Where claims start in each lane. All rows below the floor of a lane are claimed, or deleted and not vacuumed yet.
// Without floors, every claim would scan these rows again.

import type { Clock } from '../../../foundation/clock.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';

export interface LaneFloors {
  /** The lanes and floors of the next claim. */
  next(): LaneScan;
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
  /** Rows that became claimable during the scan: the scan may have passed them already. */
  readonly lowered: LaneRow[];
}

interface LaneRow {
  readonly lane: number;
  readonly seq: number;
}

/** A row may commit after rows with higher numbers, so floors are forgotten after this time. */
const floorMs = 1_000;
/** Full scans may take at most this share of the time, with pauses up to floorMsMax. */
const fullScanShare = 1 / 20;
const floorMsMax = 10_000;

export function createLaneFloors(clock: Clock): LaneFloors {
  const floors = Array.from({ length: outboxLimits.lanes }, () => 0);
  const running = new Set<LaneScan>();
  let first = 0;
  let isQuiet = false;
  /** Whether the current claim ignores the floors. */
  let isFullScan = true;
  let scannedAtMs = 0;
  let forgetAtMs = 0;
  let upkeepAtMs = clock.now();

  return {
    next() {
      const nowMs = clock.now();
      if (isFullScan || nowMs >= forgetAtMs) {
        floors.fill(0);
        isFullScan = true;
        scannedAtMs = nowMs;
      }
      const lanes = isQuiet ? [] : floors.map((_floor, at) => (first + at) % floors.length);
      const scan = { lanes, from: lanes.map((lane) => floors[lane] ?? 0), lowered: [] };
      running.add(scan);
      return scan;
    },
    claimed(scan, rows, isFull) {
      const nowMs = clock.now();
      running.delete(scan);
      isQuiet = !isFull;
      const pauseMs = Math.min((nowMs - scannedAtMs) / fullScanShare, floorMsMax);
      if (isFullScan) forgetAtMs = nowMs + Math.max(floorMs, pauseMs);
      // A short queue is always scanned from the start.
      isFullScan = !isFull;
      // The next claim starts after the last lane that had its turn.
      let reached = -1;
      for (const { lane, seq } of rows) {
        floors[lane] = Math.max(floors[lane] ?? 0, seq + 1);
        reached = Math.max(reached, (lane - first + floors.length) % floors.length);
      }
      for (const { lane, seq } of scan.lowered) floors[lane] = Math.min(floors[lane] ?? 0, seq);
      const step = reached === floors.length - 1 ? 1 : reached + 1;
      first = (first + step) % floors.length;
    },
    failed: (scan) => void running.delete(scan),
    lower(row) {
      const { lane, seq } = row;
      for (const { lowered } of running) lowered.push(row);
      floors[lane] = Math.min(floors[lane] ?? 0, seq);
    },
    reset() {
      isFullScan = true;
      for (const { lowered } of running) {
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

// When a filtered subscription is told how far it got: after each so many events that were looked at,
// counted by the store's sequence. Pure.

export interface CheckpointPace {
  /** Sequences up to `sequence` were looked at and what matched was sent: the checkpoints now due. */
  reached(sequence: number): readonly number[];
}

/** A client that fell far behind needs the latest of many checkpoints, not each. */
const atOnceMax = 10;

export function createCheckpointPace(from: number, every: number): CheckpointPace {
  let last = from;
  return {
    reached(sequence) {
      const due = Math.floor((sequence - last) / every);
      if (due < 1) return [];
      const points: number[] = [];
      const skipped = Math.max(0, due - atOnceMax);
      for (let point = skipped + 1; point <= due; point += 1) points.push(last + point * every);
      last += due * every;
      return points;
    },
  };
}

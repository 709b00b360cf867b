// The checkpoints of a filtered subscription: one after each interval of examined events, counted by the sequence of
// the store. Pure.

export interface CheckpointPace {
  /** Returns the checkpoints that are due after all matches up to `sequence` were sent. */
  reached(sequence: number): readonly number[];
}

/** Of many due checkpoints only the latest ones are sent. */
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

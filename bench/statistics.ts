// The statistics that the harness reports: medians, percentiles and the spread of rounds.

/** The middle value; for an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** Nearest rank: the smallest value that at least `percent` % of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = ascending(values);
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.max(rank, 1) - 1] ?? Number.NaN;
}

/** The largest deviation of a round from the median, as a share of the median. */
export function spread(values: readonly number[]): number {
  const middle = median(values);
  const largest = Math.max(...values.map((value) => Math.abs(value - middle)));
  return largest === 0 ? 0 : largest / middle;
}

function ascending(values: readonly number[]): number[] {
  return values.toSorted((left, right) => left - right);
}

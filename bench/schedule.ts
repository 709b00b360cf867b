// Plans the time of a case: the order of subjects, the length of slices, and the size of batches.

export interface Plan {
  readonly warmUpMs: number;
  readonly sliceMs: number;
  readonly roundsMax: number;
}

const slices = {
  throughput: { msMin: 50, msMax: 200 },
  // A percentile needs many samples in each round.
  latency: { msMin: 200, msMax: 2_000 },
} as const;

/** Divides the time of a case between its subjects: a quarter to warm up, most of the rest for rounds. */
export function planCase(options: {
  readonly budgetMs: number;
  readonly subjects: number;
  readonly measure: keyof typeof slices;
  readonly roundsMax: number;
}): Plan {
  const { msMin, msMax } = slices[options.measure];
  const perSubjectMs = options.budgetMs / options.subjects;
  return {
    warmUpMs: clamp(perSubjectMs / 4, 50, 1_000),
    sliceMs: clamp((perSubjectMs * 0.6) / options.roundsMax, msMin, msMax),
    roundsMax: options.roundsMax,
  };
}

/** The batch that should take `targetMs`, after a batch of `n` took `elapsedMs`. */
export function nextBatch(
  n: number,
  { elapsedMs, targetMs }: { readonly elapsedMs: number; readonly targetMs: number },
): number {
  // A first run is mostly compilation, so the batch grows in steps.
  const growthMax = n * 10;
  const fitting = elapsedMs > 0 ? Math.round((n * targetMs) / elapsedMs) : growthMax;
  return Math.max(1, Math.min(fitting, growthMax));
}

/** The order of one round: every subject is first equally often. */
export function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

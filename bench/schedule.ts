// How the time of a case is spent: who goes when, for how long, and how much work fills a slice.

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

/** Divides what a case may take over its subjects: a quarter to warm up, most of the rest in rounds. */
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

/** The batch that should last `targetMs`, after one of `n` lasted `elapsedMs`. */
export function nextBatch(
  n: number,
  { elapsedMs, targetMs }: { readonly elapsedMs: number; readonly targetMs: number },
): number {
  // A first run is mostly compilation and says little: the batch grows in steps.
  const growthMax = n * 10;
  const fitting = elapsedMs > 0 ? Math.round((n * targetMs) / elapsedMs) : growthMax;
  return Math.max(1, Math.min(fitting, growthMax));
}

/** The order of one round: every subject comes first as often as the others. */
export function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

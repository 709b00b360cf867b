// How fast subscriptions advance, from two answers of the server: pure.

export interface Progress {
  readonly atMs: number;
  /** By subscription. */
  readonly positions: ReadonlyMap<string, string>;
}

/** Events per second by subscription. Positions that are not a number of events have no rate. */
export function ratesBetween(
  before: Progress | undefined,
  now: Progress,
): ReadonlyMap<string, number> {
  const seconds = (now.atMs - (before?.atMs ?? now.atMs)) / 1_000;
  if (before === undefined || seconds <= 0) return new Map();
  return new Map(
    [...now.positions].flatMap(([name, position]) => {
      const from = before.positions.get(name);
      if (from === undefined) return [];
      return [[name, Math.max(0, sequenceOf(position) - sequenceOf(from)) / seconds] as const];
    }),
  );
}

/** Positions are hexadecimal, so that their order is that of their text. */
export function sequenceOf(position: string): number {
  return Number.parseInt(position, 16);
}

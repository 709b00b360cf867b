// "Did you mean …?": the option nearest to what was typed, if any is near.

/** At most a third of the letters may differ, so that `lnit` finds `lint` and `foo` finds nothing. */
export function closest(text: string, options: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(text.length, 3) / 3) + 1;
  for (const option of options) {
    const distance = editDistance(text.toLowerCase(), option.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [option, distance];
  }
  return best;
}

/** Letters to add, drop, replace or swap; stops counting at `limit`. */
function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? Infinity) + 1);
      }
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length] ?? limit;
}

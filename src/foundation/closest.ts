// "Did you mean …?": the known option that is most similar to a mistyped string.

/** The most similar option, or `undefined` if more than a third of the letters differ from every option. */
export function closest(text: string, options: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(text.length, 3) / 3) + 1;
  for (const option of options) {
    const distance = editDistance(text.toLowerCase(), option.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [option, distance];
  }
  return best;
}

/** The number of letters to add, remove, replace or swap, up to `limit`. */
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

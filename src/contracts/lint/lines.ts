// Offsets to lines and columns, both from 1.

export interface Lines {
  at(offset: number): { readonly line: number; readonly column: number };
}

/** Counts the lines when somebody first asks: most files have no finding. */
export function createLines(source: string): Lines {
  let starts: readonly number[] | undefined;
  return {
    at(offset) {
      starts ??= lineStarts(source);
      let [low, high] = [0, starts.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((starts[middle] ?? 0) <= offset) low = middle;
        else high = middle - 1;
      }
      return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
    },
  };
}

function lineStarts(source: string): readonly number[] {
  const starts = [0];
  for (const { index, 0: end } of source.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) {
    starts.push(index + end.length);
  }
  return starts;
}

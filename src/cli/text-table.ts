// Rows for people: columns as wide as they need to be, numbers at their right edge.

import type { Paint } from './paint.ts';

export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
): string {
  const widths = titles.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const isNumber = titles.map((_, at) => rows.every((row) => /^[\d,.]+( s)?$/.test(row[at] ?? '')));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) =>
        isNumber[at] === true ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [paint.bold(line(titles)), ...rows.map(line), ''].join('\n');
}

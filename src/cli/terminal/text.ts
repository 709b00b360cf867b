// Text for people: numbers, tables and field lists.

import type { Paint } from './paint.ts';

/** `12,345`; `toLocaleString` takes longer than printing a page of events. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 event`, `2 events`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Replaces control characters: text from events must not control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\uFFFD');
}

/** Columns as wide as their longest cell, numbers aligned right. */
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

/** One line per field; fields without a value are left out. */
export function fieldLines(
  fields: readonly (readonly [name: string, value: unknown])[],
  { width, paintName = (name) => name }: FieldFormat,
): string {
  return fields
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${paintName(name.padEnd(width))}${fieldText(value)}\n`)
    .join('');
}

interface FieldFormat {
  readonly width: number;
  readonly paintName?: (name: string) => string;
}

function fieldText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' ? value : JSON.stringify(value);
}

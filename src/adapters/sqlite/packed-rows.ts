// Rows on their way to the writer thread: one long text instead of five small ones for each row, as
// the copy between threads costs by the piece.

import type { RowToWrite } from '../../store/store-engine.ts';

export interface PackedRows {
  readonly text: string;
  /** Where each cell ends in the text, five to a row. */
  readonly ends: Uint32Array;
}

const cellsPerRow = 5;

export function packRows(rows: readonly RowToWrite[]): PackedRows {
  const ends = new Uint32Array(rows.length * cellsPerRow);
  let text = '';
  let cell = 0;
  for (const { eventId, type, tenant, payload, meta } of rows) {
    for (const value of [eventId, type, tenant, payload, meta]) {
      text += value;
      ends[cell] = text.length;
      cell += 1;
    }
  }
  return { text, ends };
}

export function unpackRows({ text, ends }: PackedRows): RowToWrite[] {
  const rows: RowToWrite[] = [];
  let at = 0;
  let cell = 0;
  const next = (): string => {
    const end = ends[cell] ?? at;
    const value = text.slice(at, end);
    at = end;
    cell += 1;
    return value;
  };
  while (cell < ends.length) {
    rows.push({ eventId: next(), type: next(), tenant: next(), payload: next(), meta: next() });
  }
  return rows;
}

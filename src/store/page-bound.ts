// The size of a page: at most so many rows, and so many bytes. One rule for all engines and readers. Pure.

import type { StoredRow } from './recorded-event.ts';

export interface PageBound {
  readonly limit: number;
  /** The page ends with the row that reaches this size, so it has at least one row. */
  readonly bytesMax: number;
}

export const pageLimits = {
  eventsDefault: 500,
  eventsMax: 10_000,
  /** As `rowBytes` counts them. A reader has one page in use and may have a second one prefetched. */
  bytesDefault: 2_097_152,
} as const;

/** The memory of a row: a character of a string may need two bytes. */
export function rowBytes({ payload, meta }: Pick<StoredRow, 'payload' | 'meta'>): number {
  return 2 * (payload.length + meta.length);
}

export function rowsBytes(rows: readonly Pick<StoredRow, 'payload' | 'meta'>[]): number {
  return rows.reduce((sum, row) => sum + rowBytes(row), 0);
}

/**
 * Returns a function that takes the rows of a page one by one, and returns true for the last one; for engines.
 *
 * @example
 * import { createPageMeter, type PageBound, type StoredRow } from 'millrace/store';
 *
 * const firstPage = (rows: readonly StoredRow[], bound: PageBound): readonly StoredRow[] => {
 *   const isLast = createPageMeter(bound);
 *   const last = rows.findIndex((row) => isLast(row));
 *   return last === -1 ? rows : rows.slice(0, last + 1);
 * };
 */
export function createPageMeter({
  limit,
  bytesMax,
}: PageBound): (row: Pick<StoredRow, 'payload' | 'meta'>) => boolean {
  let rows = 0;
  let bytes = 0;
  return (row) => {
    rows += 1;
    bytes += rowBytes(row);
    return rows >= limit || bytes >= bytesMax;
  };
}

/** The page size that a caller asked for, within the limits. */
export function toPageBound({
  pageSize = pageLimits.eventsDefault,
  pageBytes = pageLimits.bytesDefault,
}: {
  readonly pageSize?: number | undefined;
  readonly pageBytes?: number | undefined;
}): PageBound {
  const limit = Number.isNaN(pageSize) ? pageLimits.eventsDefault : Math.floor(pageSize);
  return {
    limit: Math.max(1, Math.min(limit, pageLimits.eventsMax)),
    bytesMax: Math.min(pageBytes, pageLimits.bytesDefault),
  };
}

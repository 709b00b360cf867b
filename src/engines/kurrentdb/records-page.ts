// A page of all events: which records belong to it, and how far it goes. Pure.

import type { TailRow } from '../../store/append-tail.ts';
import { createPageMeter } from '../../store/page-bound.ts';
import type { AllPage, AllQuery } from '../../store/store-engine.ts';
import { isWanted } from './push-down.ts';

/** `considered` is the position of the last record that was read, wanted or not. */
export interface RecordsPage extends AllPage {
  readonly rows: readonly TailRow[];
}

export interface PageCollector {
  /**
   * Adds the next record; a row is undefined if the filter rejects it. Returns false if the page is full and the record
   * belongs to the next one.
   */
  add(sequence: number, row: TailRow | undefined): boolean;
  /** `cut`: there may be further records at the last position, so the next page has that position. */
  page(end: 'end' | 'full' | 'cut'): RecordsPage;
}

/** The events of an old explicit transaction share a position, so a page never ends between them. */
export function createPageCollector(
  query: Pick<AllQuery, 'after' | 'filter' | 'limit' | 'bytesMax'>,
): PageCollector {
  const isLast = createPageMeter(query);
  const rows: TailRow[] = [];
  let [before, last] = [query.after, query.after];
  let scanned = 0;
  let isFull = false;
  return {
    add(sequence, row) {
      if (sequence !== last) {
        if (isFull) return false;
        [before, last] = [last, sequence];
      }
      scanned += 1;
      if (row === undefined || !isWanted(query.filter, row)) return true;
      rows.push(row);
      isFull = isLast(row) || isFull;
      return true;
    },
    page(end) {
      if (end !== 'cut') return { rows, considered: last, scanned, end: end === 'end' };
      const complete = rows.filter(({ sequence }) => sequence !== last);
      return { rows: complete, considered: before, scanned, end: false };
    },
  };
}

// A page of all events: which records belong to it, and how far it goes. Pure.

import type { TailRow } from '../../store/append-tail.ts';
import { createPageMeter, type PageBound } from '../../store/page-bound.ts';
import type { AllPage, RowFilter } from '../../store/store-engine.ts';
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
  /** `end`: there are no further records. */
  page(end: boolean): RecordsPage;
  /** The page without the records of its last position: the read ended within a transaction. */
  withoutLast(): RecordsPage;
}

/** The events of an old explicit transaction share a position, so a page never ends between them. */
export function createPageCollector(
  bound: PageBound & { readonly after: number; readonly filter?: RowFilter | undefined },
): PageCollector {
  const { after, filter } = bound;
  const isLast = createPageMeter(bound);
  const rows: TailRow[] = [];
  let considered = after;
  let before = after;
  let scanned = 0;
  let isFull = false;
  return {
    add(sequence, row) {
      if (isFull && sequence !== considered) return false;
      if (sequence !== considered) before = considered;
      considered = sequence;
      scanned += 1;
      if (row === undefined || (filter !== undefined && !isWanted(filter, row))) return true;
      rows.push(row);
      if (isLast(row)) isFull = true;
      return true;
    },
    page: (end) => ({ rows, considered, scanned, end }),
    withoutLast() {
      const kept = rows.filter(({ sequence }) => sequence !== considered);
      return { rows: kept, considered: before, scanned, end: false };
    },
  };
}

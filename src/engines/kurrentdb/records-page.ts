// A page of all events: which records belong to it, and how far it goes. Pure.

import { createPageMeter, type PageBound } from '../../store/page-bound.ts';
import type { AllPage, RowFilter } from '../../store/store-engine.ts';
import type { ReadRecord } from './event-record.ts';
import { isWanted } from './push-down.ts';

export interface RecordsPage {
  readonly records: readonly ReadRecord[];
  /** The position of the last record that was read, wanted or not. */
  readonly considered: number;
  /** The number of records that were read. */
  readonly scanned: number;
  readonly end: boolean;
}

export interface PageCollector {
  /** Returns false if the page is full and the record belongs to the next one. */
  add(record: ReadRecord): boolean;
  /** Like `add`, for a record that the filter rejects. */
  pass(sequence: number): boolean;
  /** The page without the records of its last position: the read ended within a transaction. */
  withoutLast(): RecordsPage;
  full(): RecordsPage;
  /** The page, if there are no further records. */
  whole(): RecordsPage;
}

/** The events of an old explicit transaction share a position, so a page never ends between them. */
export function createPageCollector(
  bound: PageBound & { readonly after: number; readonly filter?: RowFilter | undefined },
): PageCollector {
  const { after, filter } = bound;
  const isLast = createPageMeter(bound);
  const records: ReadRecord[] = [];
  let considered = after;
  let before = after;
  let scanned = 0;
  let isFull = false;
  const pass = (sequence: number): boolean => {
    if (isFull && sequence !== considered) return false;
    if (sequence !== considered) before = considered;
    considered = sequence;
    scanned += 1;
    return true;
  };
  return {
    pass,
    add(record) {
      if (!pass(record.row.sequence)) return false;
      if (filter !== undefined && !isWanted(filter, record)) return true;
      records.push(record);
      if (isLast(record.row)) isFull = true;
      return true;
    },
    withoutLast() {
      const kept = records.filter(({ row }) => row.sequence !== considered);
      return { records: kept, considered: before, scanned, end: false };
    },
    full: () => ({ records, considered, scanned, end: false }),
    whole: () => ({ records, considered, scanned, end: true }),
  };
}

export function toAllPage({ records, considered, scanned, end }: RecordsPage): AllPage {
  return { rows: records.map(({ row }) => row), considered, scanned, end };
}

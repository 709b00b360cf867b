// The last rows that this process appended: live readers get them from memory instead of the database.

import { matchesRow } from './event-filter.ts';
import { createPageMeter, rowBytes } from './page-bound.ts';
import type { StoredRow } from './recorded-event.ts';
import type { AllPage, AllQuery, RowToWrite, StreamWrite } from './store-engine.ts';

/** A written row with the values that the commit assigned. */
export interface TailRow extends StoredRow, Pick<RowToWrite, 'tenant'> {}

export interface AppendTail {
  /** The highest sequence in memory; 0: none. */
  readonly last: number;
  /** Adds committed rows in sequence order; rows up to `last` are ignored. */
  add(rows: readonly TailRow[]): void;
  /** Undefined: the query needs rows that are not in memory. */
  read(query: AllQuery): AllPage | undefined;
  forget(): void;
}

export const tailLimits = { rowsMax: 2_048, bytesMax: 4_194_304 } as const;

export function createAppendTail(limits: typeof tailLimits = tailLimits): AppendTail {
  /** Consecutive sequences without gaps; all processes share one counter. */
  let rows: TailRow[] = [];
  let bytes = 0;
  let last = 0;

  function clear(): void {
    rows = [];
    bytes = 0;
  }

  function makeRoom(): void {
    let evicted = 0;
    while (rows.length - evicted > limits.rowsMax || bytes > limits.bytesMax) {
      bytes -= rowBytes(rows[evicted] as TailRow);
      evicted += 1;
    }
    // An evicted row that stays in the array stays in memory.
    if (evicted > 0) rows = rows.slice(evicted);
  }

  /** Fills the page from memory, or returns undefined if it needs older rows. */
  function readBackwards(query: AllQuery): AllPage | undefined {
    const { after, filter } = query;
    if (after > last + 1) return undefined;
    const isLast = createPageMeter(query);
    const found: StoredRow[] = [];
    for (let at = rows.length - 1 - (last + 1 - after); at >= 0; at -= 1) {
      const row = rows[at] as TailRow;
      if (!matchesRow(filter, row, row.tenant)) continue;
      found.push(row);
      if (isLast(row)) return { rows: found, considered: row.sequence, end: false };
    }
    return undefined;
  }

  return {
    get last() {
      return last;
    },
    add(added) {
      for (const row of added) {
        // A later commit was added first.
        if (row.sequence <= last) continue;
        // Another process wrote the rows in between, so only the database has them.
        if (row.sequence !== last + 1) clear();
        rows.push(row);
        bytes += rowBytes(row);
        last = row.sequence;
      }
      makeRoom();
    },
    read(query) {
      const { isLive, after, filter } = query;
      if (query.direction === 'backwards') return readBackwards(query);
      // After the last row, only the database knows whether other processes have written more.
      if (isLive !== true || after >= last || after < last - rows.length) return undefined;
      const found: StoredRow[] = [];
      const isLast = createPageMeter(query);
      for (let at = rows.length - (last - after); at < rows.length; at += 1) {
        const row = rows[at] as TailRow;
        if (!matchesRow(filter, row, row.tenant)) continue;
        found.push(row);
        if (isLast(row)) return { rows: found, considered: row.sequence, end: false };
      }
      return { rows: found, considered: last, end: true };
    },
    forget: clear,
  };
}

/** The rows of an append with their committed sequence and revision. */
export function tailRows(
  { stream, rows }: StreamWrite,
  nowMs: number,
  { revision, sequence }: { readonly revision: number; readonly sequence: number },
): readonly TailRow[] {
  const before = rows.length - 1;
  return rows.map(({ eventId, type, tenant, payload, meta }, at) => ({
    sequence: sequence - before + at,
    stream,
    revision: revision - before + at,
    eventId,
    type,
    recordedAtMs: nowMs,
    payload,
    meta,
    tenant,
  }));
}

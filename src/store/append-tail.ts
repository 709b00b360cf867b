// The last rows that this process appended: live readers get them from memory instead of the database.

import { matchesRow } from './event-filter.ts';
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

export const tailLimits = { rowsMax: 2_048, charsMax: 2_097_152 } as const;

export function createAppendTail(limits: typeof tailLimits = tailLimits): AppendTail {
  /** Consecutive sequences without gaps; all processes share one counter. */
  let rows: TailRow[] = [];
  let first = 0;
  let chars = 0;
  let last = 0;

  const charsOf = ({ payload, meta }: TailRow): number => payload.length + meta.length;

  function clear(): void {
    rows = [];
    first = 0;
    chars = 0;
  }

  function makeRoom(): void {
    while (rows.length - first > limits.rowsMax || chars > limits.charsMax) {
      chars -= charsOf(rows[first] as TailRow);
      first += 1;
    }
    if (first < limits.rowsMax) return;
    rows = rows.slice(first);
    first = 0;
  }

  /** Fills the page from memory, or returns undefined if it needs older rows. */
  function readBackwards({ after, limit, filter }: AllQuery): AllPage | undefined {
    if (after > last + 1) return undefined;
    const found: StoredRow[] = [];
    for (let at = rows.length - 1 - (last + 1 - after); at >= first; at -= 1) {
      const row = rows[at] as TailRow;
      if (!matchesRow(filter, row, row.tenant)) continue;
      found.push(row);
      if (found.length >= limit) return { rows: found, considered: row.sequence, end: false };
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
        chars += charsOf(row);
        last = row.sequence;
      }
      makeRoom();
    },
    read(query) {
      const { isLive, after, limit, filter } = query;
      if (query.direction === 'backwards') return readBackwards(query);
      const known = rows.length - first;
      // After the last row, only the database knows whether other processes have written more.
      if (isLive !== true || after >= last || after < last - known) return undefined;
      const found: StoredRow[] = [];
      for (let at = rows.length - (last - after); at < rows.length; at += 1) {
        const row = rows[at] as TailRow;
        if (!matchesRow(filter, row, row.tenant)) continue;
        found.push(row);
        if (found.length >= limit) return { rows: found, considered: row.sequence, end: false };
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

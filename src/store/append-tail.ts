// What this process has just appended, for those who wait for it: they need not ask the database for what
// went through here a moment ago.

import { categoryOf, type StoredRow } from './recorded-event.ts';
import type { AllPage, AllQuery, RowToWrite, StreamWrite } from './store-engine.ts';

/** A row as it was written, with what only the commit knew. */
export interface TailRow extends StoredRow, Pick<RowToWrite, 'tenant'> {}

export interface AppendTail {
  /** The last sequence that is known here; 0: none. */
  readonly last: number;
  /** Rows of commits, in the order of their sequences; those below the last one are left out. */
  add(rows: readonly TailRow[]): void;
  /** Undefined: not all of it is known here. */
  read(query: AllQuery): AllPage | undefined;
  forget(): void;
}

export const tailLimits = { rowsMax: 2_048, charsMax: 2_097_152 } as const;

export function createAppendTail(limits: typeof tailLimits = tailLimits): AppendTail {
  /** Their sequences have no hole: numbers are given out one by one, whichever process asks. */
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

  /** All that is below a number that is known here; others come behind it. */
  function readBackwards({ after, limit, filter }: AllQuery): AllPage | undefined {
    if (after > last + 1) return undefined;
    const found: StoredRow[] = [];
    for (let at = rows.length - 1 - (last + 1 - after); at >= first; at -= 1) {
      const row = rows[at] as TailRow;
      if (!fits(row, filter)) continue;
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
        // A commit that overtook this one was told of first.
        if (row.sequence <= last) continue;
        // Somebody else was in between: what they wrote is in the database only.
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
      // At the last one, only the database can tell whether others have written since.
      if (isLive !== true || after >= last || after < last - known) return undefined;
      const found: StoredRow[] = [];
      for (let at = rows.length - (last - after); at < rows.length; at += 1) {
        const row = rows[at] as TailRow;
        if (!fits(row, filter)) continue;
        found.push(row);
        if (found.length >= limit) return { rows: found, considered: row.sequence, end: false };
      }
      return { rows: found, considered: last, end: true };
    },
    forget: clear,
  };
}

/** The rows of an append, once it is known where they are. */
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

function fits(row: TailRow, { type, category, tenant, stream }: AllQuery['filter']): boolean {
  return (
    type?.(row.type) !== false &&
    (tenant === undefined || tenant === row.tenant) &&
    (category === undefined || category === categoryOf(row.stream)) &&
    stream?.(row.stream) !== false
  );
}

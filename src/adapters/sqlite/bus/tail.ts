// What this process has just published, for those who follow it: they need not ask the file for what went
// through here a moment ago.

import {
  matchesFilter,
  type Appended,
  type EngineEntry,
  type StoredEntry,
} from '../../../bus/bus-engine.ts';

export interface BusTail {
  /** The last number that is known here; 0: none. */
  readonly last: number;
  /** What one commit has stored, in its order. */
  add(
    entries: readonly EngineEntry[],
    appended: readonly Appended[],
    facts: { readonly storedAtMs: number },
  ): void;
  /** All up to `considered` that the pattern takes. Undefined: not all of it is known here. */
  read(
    pattern: string,
    range: { readonly after: number; readonly limit: number },
  ): { readonly entries: readonly StoredEntry[]; readonly considered: number } | undefined;
  forget(): void;
}

const busTailLimits = { entriesMax: 1_024, bytesMax: 1_048_576 } as const;

export function createBusTail(
  limits: { readonly entriesMax: number; readonly bytesMax: number } = busTailLimits,
): BusTail {
  /** Their numbers have no hole: they are given out one by one, whichever process asks. */
  let known: StoredEntry[] = [];
  let first = 0;
  let bytes = 0;
  let last = 0;

  function forget(): void {
    known = [];
    first = 0;
    bytes = 0;
  }

  function makeRoom(): void {
    while (known.length - first > limits.entriesMax || bytes > limits.bytesMax) {
      bytes -= known[first]?.data.length ?? 0;
      first += 1;
    }
    if (first < limits.entriesMax) return;
    known = known.slice(first);
    first = 0;
  }

  return {
    get last() {
      return last;
    },
    add(entries, appended, { storedAtMs }) {
      for (const [at, { subject, data, meta }] of entries.entries()) {
        const { sequence = '', isDuplicate = true } = appended[at] ?? {};
        if (isDuplicate) continue;
        // Somebody else was in between: what they wrote is in the file only.
        if (Number(sequence) !== last + 1) forget();
        known.push({ subject, sequence, position: sequence, storedAtMs, data, meta });
        bytes += data.length;
        last = Number(sequence);
      }
      makeRoom();
    },
    read(pattern, { after, limit }) {
      // At the last one, only the file can tell whether others have written since.
      if (after >= last || after < last - (known.length - first)) return undefined;
      const entries: StoredEntry[] = [];
      for (let at = known.length - (last - after); at < known.length; at += 1) {
        const entry = known[at] as StoredEntry;
        if (!matchesFilter(pattern, entry.subject)) continue;
        entries.push(entry);
        if (entries.length >= limit) return { entries, considered: Number(entry.sequence) };
      }
      return { entries, considered: last };
    },
    forget,
  };
}

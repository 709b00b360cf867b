// The newest messages that this process published: readers take them from memory instead of the file.

import {
  matchesFilter,
  type Appended,
  type EngineEntry,
  type StoredEntry,
} from '../../../bus/bus-engine.ts';

export interface BusTail {
  /** The last known sequence; 0: no message is known. */
  readonly last: number;
  /** Adds the messages of one commit, in order. */
  add(
    entries: readonly EngineEntry[],
    appended: readonly Appended[],
    facts: { readonly storedAtMs: number },
  ): void;
  /** All matching messages up to `considered`; undefined: some of them are only in the file. */
  read(
    pattern: string,
    range: { readonly after: number; readonly limit: number },
  ): { readonly entries: readonly StoredEntry[]; readonly considered: number } | undefined;
  clear(): void;
}

const busTailLimits = { entriesMax: 1_024, bytesMax: 1_048_576 } as const;

export function createBusTail(
  limits: { readonly entriesMax: number; readonly bytesMax: number } = busTailLimits,
): BusTail {
  /** The messages in memory; their sequences are consecutive, because SQLite assigns them across all processes. */
  let known: StoredEntry[] = [];
  let bytes = 0;
  let last = 0;

  function clear(): void {
    known = [];
    bytes = 0;
  }

  function makeRoom(): void {
    let evicted = 0;
    while (known.length - evicted > limits.entriesMax || bytes > limits.bytesMax) {
      bytes -= known[evicted]?.data.length ?? 0;
      evicted += 1;
    }
    // An evicted message that stays in the array stays in memory.
    if (evicted > 0) known = known.slice(evicted);
  }

  return {
    get last() {
      return last;
    },
    add(entries, appended, { storedAtMs }) {
      for (const [at, { subject, data, meta }] of entries.entries()) {
        const { sequence = '', isDuplicate = true } = appended[at] ?? {};
        if (isDuplicate) continue;
        // Another process wrote in between; its messages are only in the file.
        if (Number(sequence) !== last + 1) clear();
        known.push({ subject, sequence, position: sequence, storedAtMs, data, meta });
        bytes += data.length;
        last = Number(sequence);
      }
      makeRoom();
    },
    read(pattern, { after, limit }) {
      // After the last known message, only the file knows whether other processes have written since.
      if (after >= last || after < last - known.length) return undefined;
      const entries: StoredEntry[] = [];
      for (let at = known.length - (last - after); at < known.length; at += 1) {
        const entry = known[at] as StoredEntry;
        if (!matchesFilter(pattern, entry.subject)) continue;
        entries.push(entry);
        if (entries.length >= limit) return { entries, considered: Number(entry.sequence) };
      }
      return { entries, considered: last };
    },
    clear,
  };
}

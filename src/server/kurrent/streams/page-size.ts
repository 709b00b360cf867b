// The page size of reads: starts small and grows while events are small. The growing page bounds the memory of a reader in bytes,
// although stores count in events. Pure.

export interface PageSize {
  readonly current: number;
  /** Reports the size of a page. */
  took(events: number, bytes: number): void;
}

const pageSizes = { first: 16, bytesWanted: 1_048_576 } as const;

export function createPageSize(max: number): PageSize {
  let current = Math.min(pageSizes.first, max);
  return {
    get current() {
      return current;
    },
    took(events, bytes) {
      if (events === 0) return;
      const fitting = Math.floor(pageSizes.bytesWanted / Math.max(1, bytes / events));
      current = Math.max(1, Math.min(fitting, current * 2, max));
    },
  };
}

// How many events are read from the store in one go: few at first, more while they are small, so that
// what one reader holds is bounded in bytes although stores count in events. Pure.

export interface PageSize {
  readonly current: number;
  /** A page of so many events had so many bytes. */
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

// The last so many names that were seen: a memory that does not grow.

export interface RecentSet {
  has(name: string): boolean;
  add(name: string): void;
  clear(): void;
}

export function createRecentSet(max: number): RecentSet {
  // Two halves: when the younger is full it becomes the older, and the older is forgotten.
  let younger = new Set<string>();
  let older = new Set<string>();
  return {
    has: (name) => younger.has(name) || older.has(name),
    add(name) {
      younger.add(name);
      if (younger.size < max / 2) return;
      older = younger;
      younger = new Set();
    },
    clear() {
      younger.clear();
      older.clear();
    },
  };
}

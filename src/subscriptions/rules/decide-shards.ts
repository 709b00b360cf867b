// Decides which shards a process should own, so that all shards have an owner and the load is even. Every
// process decides for itself from the same facts.

export interface ShardLease {
  readonly shard: number;
  readonly owner: string;
  /** Remaining time of the lease; 0 or less means that it is free. */
  readonly remainingMs: number;
}

export interface ShardFacts {
  readonly shards: number;
  readonly self: string;
  /** Live processes; this one may be missing. */
  readonly workers: readonly string[];
  readonly leases: readonly ShardLease[];
}

export interface ShardDecision {
  readonly acquire: readonly number[];
  readonly release: readonly number[];
}

/**
 * Acquires free shards up to the fair share and releases shards above it.
 *
 * @example
 * import { decideShards } from 'millrace/subscriptions';
 *
 * console.log(decideShards({ shards: 4, self: 'a', workers: ['a', 'b'], leases: [] }).acquire.length); // 2
 */
export function decideShards({ shards, self, workers, leases }: ShardFacts): ShardDecision {
  const alive = new Set([...workers, self]);
  const share = Math.ceil(shards / alive.size);
  const activeLeases = leases.filter(({ remainingMs }) => remainingMs > 0);
  const mine = activeLeases.filter(({ owner }) => owner === self).map(({ shard }) => shard);
  // Keep the rounded-up share; keep the rounded-down share while another worker has less than that.
  const least = Math.floor(shards / alive.size);
  const isShort = [...alive].some(
    (worker) => activeLeases.filter(({ owner }) => owner === worker).length < least,
  );
  const keep = isShort && mine.length > least ? least : share;
  if (mine.length > keep) return { acquire: [], release: mine.toSorted(ascending).slice(keep) };
  const taken = new Set(activeLeases.map(({ shard }) => shard));
  const free = Array.from({ length: shards }, (_, shard) => shard).filter(
    (shard) => !taken.has(shard),
  );
  // Each worker starts at a different shard, so that workers that start together rarely collide.
  const order = [...alive].toSorted();
  const offset = Math.floor((order.indexOf(self) * shards) / order.length);
  const rotated = free.toSorted(
    (a, b) => ((a - offset + shards) % shards) - ((b - offset + shards) % shards),
  );
  return { acquire: rotated.slice(0, keep - mine.length), release: [] };
}

function ascending(a: number, b: number): number {
  return a - b;
}

// Which shard and which lane an aggregate belongs to: always the same one, so that its order holds,
// and a bounded number of them, whatever the number of aggregates.

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/** FNV-1a with a last mix: names that differ only in their last character still spread evenly. */
function hashOf(stream: string): number {
  let hash = offsetBasis;
  for (let at = 0; at < stream.length; at += 1) {
    hash = Math.imul(hash ^ stream.charCodeAt(at), prime);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * The shard of a stream: what one process owns.
 *
 * @example
 * import { shardOf } from 'millrace/subscriptions';
 *
 * console.log(shardOf('banking.account.v1-core-a1', 8)); // 0 … 7, the same in every process
 */
export function shardOf(stream: string, shards: number): number {
  return shards === 1 ? 0 : hashOf(stream) % shards;
}

/** The lane within its shard; independent of the shard's number, so that all lanes get work. */
export function laneOf(
  stream: string,
  { shards, lanes }: { readonly shards: number; readonly lanes: number },
): number {
  return Math.floor(hashOf(stream) / shards) % lanes;
}

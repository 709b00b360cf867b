// Maps a stream to its shard and lane. The mapping is stable, which preserves the order of a stream, and
// the number of lanes does not depend on the number of streams.

import { withoutForgottenPrefix } from '../../store/erasure.ts';

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/** FNV-1a with a final mix, so that names that differ only in the last character spread evenly. */
function hashOf(name: string): number {
  // An erasure is handled in the lane of its stream, after the events that were read before it.
  const stream = withoutForgottenPrefix(name);
  let hash = offsetBasis;
  for (let at = 0; at < stream.length; at += 1) {
    hash = Math.imul(hash ^ stream.charCodeAt(at), prime);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * The shard of a stream. One process owns a shard.
 *
 * @example
 * import { shardOf } from 'millrace/subscriptions';
 *
 * console.log(shardOf('banking.account.v1-core-a1', 8)); // 0 … 7, the same in every process
 */
export function shardOf(stream: string, shards: number): number {
  return shards === 1 ? 0 : hashOf(stream) % shards;
}

/** The lane within the shard, independent of the shard number, so that all lanes get work. */
export function laneOf(
  stream: string,
  { shards, lanes }: { readonly shards: number; readonly lanes: number },
): number {
  return Math.floor(hashOf(stream) / shards) % lanes;
}

// Snapshots and key claims of aggregates in Redis. Losing the snapshots costs only time.

import type { KeyClaims, KeyUse } from '../../../aggregates/idempotency.ts';
import type { Snapshot, SnapshotStore } from '../../../aggregates/snapshot-store.ts';
import { redisKeys } from '../../../contracts/redis-keys.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), ['saveSnapshot', 'claimKey']);

/** A key that is not used for so long is forgotten: Redis keeps all keys in memory. */
const keyTtlMs = 30 * 86_400_000;

export function redisSnapshots(connection: RedisConnection): SnapshotStore {
  return {
    async load(stream) {
      const key = redisKeys.aggregateSnapshot(stream);
      const text = await connection.ask((client) => client.hget(key, 'snapshot'));
      return text === null ? undefined : (JSON.parse(text) as Snapshot);
    },
    async save(stream, snapshot) {
      const key = redisKeys.aggregateSnapshot(stream);
      const values = [snapshot.revision, JSON.stringify(snapshot)];
      await connection.run(scripts.saveSnapshot, [key], values);
    },
  };
}

export function redisKeyClaims(connection: RedisConnection): KeyClaims {
  return {
    async claim(key, { stream, command }): Promise<KeyUse> {
      const values = [stream, command, keyTtlMs];
      const reply = await connection.run(scripts.claimKey, [redisKeys.commandKey(key)], values);
      const [owner = '', first = ''] = reply as readonly string[];
      return { stream: owner, command: first };
    },
  };
}

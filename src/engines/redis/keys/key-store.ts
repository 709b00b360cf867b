// Keys in Redis. Names and values are stored unchanged, so that other programs can read them.

import type { KeyEntry, KeyStore } from '../../../work/key-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'put',
  'replace',
  'read',
  'remove',
]);

export function redisKeyStore(connection: RedisConnection): KeyStore {
  return {
    async get(key) {
      const [value, ttl] = (await connection.run(scripts.read, [key], [])) as [
        string | null,
        number,
      ];
      return value === null ? undefined : entryOf(value, ttl);
    },
    async putIfAbsent(key, value, { ttlMs } = {}) {
      const found = await connection.run(scripts.put, [key], [value, wholeMs(ttlMs)]);
      const [current, ttl] = found as [string, number];
      return entryOf(current, ttl);
    },
    async replace(key, { from, to, ttlMs }) {
      const values = [from === undefined ? 0 : 1, from ?? '', to, wholeMs(ttlMs)];
      return (await connection.run(scripts.replace, [key], values)) === 1;
    },
    remove: async (key, value) => (await connection.run(scripts.remove, [key], [value])) === 1,
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

function entryOf(value: string, ttl: number): KeyEntry {
  return { value, expiresInMs: ttl < 0 ? undefined : ttl };
}

function wholeMs(ttlMs: number | undefined): string {
  return ttlMs === undefined ? '' : String(Math.max(1, Math.ceil(ttlMs)));
}

// Keys on SQLite, for the processes of one machine, which share its clock.

import { systemClock, type Clock } from '../../../foundation/clock.ts';
import type { KeyEntry, KeyStore } from '../../../work/key-store.ts';
import { openWorkFile } from '../queue/file.ts';

interface Row {
  readonly value: string;
  readonly expires_at_ms: number | null;
}

/** Expired keys are deleted once per this many writes. */
const sweepEvery = 1_000;

/** Keys in a separate file, `sqlite:<file>`, or `memory:` within one process. */
export function sqliteKeyStore(
  url: string,
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): KeyStore {
  const database = openWorkFile(url);
  database.exec(
    `create table if not exists work_keys (
       key text primary key, value text not null, expires_at_ms integer
     ) without rowid`,
  );
  const read = database.prepare(
    `select value, expires_at_ms from work_keys
     where key = $key and (expires_at_ms is null or expires_at_ms > $now)`,
  );
  const put = database.prepare(
    `insert into work_keys (key, value, expires_at_ms) values ($key, $value, $until)
     on conflict (key) do update set value = excluded.value, expires_at_ms = excluded.expires_at_ms
       where work_keys.expires_at_ms <= $now
     returning value`,
  );
  const change = database.prepare(
    `update work_keys set value = $value, expires_at_ms = $until
     where key = $key and value = $from and (expires_at_ms is null or expires_at_ms > $now)`,
  );
  const remove = database.prepare(
    `delete from work_keys
     where key = ? and value = ? and (expires_at_ms is null or expires_at_ms > ?)`,
  );
  const sweep = database.prepare('delete from work_keys where expires_at_ms <= ?');
  let puts = 0;

  const get = (key: string): KeyEntry | undefined => {
    const now = clock.now();
    const row = read.get({ key, now }) as Row | undefined;
    if (row === undefined) return undefined;
    const until = row.expires_at_ms;
    return { value: row.value, expiresInMs: until === null ? undefined : until - now };
  };
  const putNew = (key: string, value: string, ttlMs: number | undefined): boolean => {
    const now = clock.now();
    puts += 1;
    if (puts % sweepEvery === 0) sweep.run(now);
    const until = ttlMs === undefined ? null : Math.ceil(now + ttlMs);
    return put.get({ key, value, until, now }) !== undefined;
  };

  return {
    get: async (key) => get(key),
    async putIfAbsent(key, value, { ttlMs } = {}) {
      for (;;) {
        if (putNew(key, value, ttlMs)) return { value, expiresInMs: ttlMs };
        const existing = get(key);
        // Retry if no row was found: the key expired between the two statements.
        if (existing !== undefined) return existing;
      }
    },
    async replace(key, { from, to, ttlMs }) {
      if (from === undefined) return putNew(key, to, ttlMs);
      const now = clock.now();
      const until = ttlMs === undefined ? null : Math.ceil(now + ttlMs);
      return change.run({ key, value: to, from, until, now }).changes === 1;
    },
    remove: async (key, value) => remove.run(key, value, clock.now()).changes === 1,
    async [Symbol.asyncDispose]() {
      if (database.isOpen) database.close();
    },
  };
}

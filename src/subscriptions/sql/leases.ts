import type { FenceTokens, LeaseStore } from '../subscription-storage.ts';
import type { SqlDatabase } from '../../store/sql-database.ts';

export function sqlLeases({ dialect, run }: SqlDatabase): LeaseStore {
  const shards = dialect.table('subscription_shards');
  const workers = dialect.table('subscription_workers');
  const now = dialect.nowMs;
  const sql = {
    create: `insert into ${shards} (subscription, shard) values (?1, ?2) on conflict do nothing`,
    lock: `select 1 from ${shards} where subscription = ?1 and shard = ?2 and expires_at_ms <= ${now}${dialect.takeRow}`,
    acquire: `update ${shards} set owner = ?3, expires_at_ms = ${now} + ?4,
      token = case when token < ?5 then ?5 else token end + 1
      where subscription = ?1 and shard = ?2 and expires_at_ms <= ${now} returning token`,
    remaining: `select expires_at_ms - ${now} from ${shards} where subscription = ?1 and shard = ?2`,
    renew: `update ${shards} set expires_at_ms = ${now} + ?4
      where subscription = ?1 and shard = ?2 and token = ?3 and expires_at_ms > 0 returning 1`,
    release: `update ${shards} set expires_at_ms = 0
      where subscription = ?1 and shard = ?2 and token = ?3`,
    list: `select shard, owner, expires_at_ms - ${now} from ${shards}
      where subscription = ?1 and expires_at_ms > 0 order by shard`,
    announce: `insert into ${workers} (subscription, worker, expires_at_ms) values (?1, ?2, ${now} + ?3)
      on conflict (subscription, worker) do update set expires_at_ms = excluded.expires_at_ms`,
    expire: `delete from ${workers} where subscription = ?1 and expires_at_ms <= ${now}`,
    workers: `select worker from ${workers} where subscription = ?1 order by worker`,
    live: `select worker, expires_at_ms - ${now} from ${workers}
      where subscription = ?1 and expires_at_ms > ${now} order by worker`,
    leave: `delete from ${workers} where subscription = ?1 and worker = ?2`,
  };
  return {
    async acquire({ subscription, shard }, owner, ttlMs, { above = 0 } = {}) {
      const key = [subscription, shard];
      const results = await run([
        { sql: sql.create, values: key },
        // Lock only an expired lease, because its last owner may still be committing.
        { sql: sql.lock, values: key },
        { sql: sql.acquire, values: [...key, owner, ttlMs, above] },
        { sql: sql.remaining, values: key },
      ]);
      const token = results[2]?.[0]?.[0];
      if (token !== undefined) return { kind: 'acquired', token: Number(token) };
      return { kind: 'held', retryInMs: Math.max(1, Number(results[3]?.[0]?.[0] ?? 1)) };
    },
    async renew({ subscription, shard, token }, ttlMs) {
      const values = [subscription, shard, token, ttlMs];
      const [rows = []] = await run([{ sql: sql.renew, values }]);
      return rows.length > 0;
    },
    async release({ subscription, shard, token }) {
      await run([{ sql: sql.release, values: [subscription, shard, token] }]);
    },
    async list(subscription) {
      const [rows = []] = await run([{ sql: sql.list, values: [subscription] }]);
      return rows.map(([shard, owner, remainingMs]) => ({
        shard: Number(shard),
        owner: String(owner),
        remainingMs: Math.max(0, Number(remainingMs)),
      }));
    },
    async announce(subscription, worker, ttlMs) {
      const results = await run([
        { sql: sql.announce, values: [subscription, worker, ttlMs] },
        { sql: sql.expire, values: [subscription] },
        { sql: sql.workers, values: [subscription] },
      ]);
      return (results[2] ?? []).map(([each]) => String(each));
    },
    async leave(subscription, worker) {
      await run([{ sql: sql.leave, values: [subscription, worker] }]);
    },
    async workers(subscription) {
      const [rows = []] = await run([{ sql: sql.live, values: [subscription] }]);
      return rows.map(([worker, remainingMs]) => ({
        worker: String(worker),
        remainingMs: Number(remainingMs),
      }));
    },
  };
}

export function sqlTokens({ dialect, run }: SqlDatabase): FenceTokens {
  const shards = dialect.table('subscription_shards');
  const sql = {
    current: `select token from ${shards} where subscription = ?1 and shard = ?2`,
    create: `insert into ${shards} (subscription, shard) values (?1, ?2) on conflict do nothing`,
    lock: `select 1 from ${shards} where subscription = ?1 and shard = ?2${dialect.takeRow}`,
    raise: `update ${shards} set token = ?3, owner = '', expires_at_ms = 0
      where subscription = ?1 and shard = ?2 and token < ?3 returning 1`,
  };
  return {
    async current({ subscription, shard }) {
      const [[row] = []] = await run([{ sql: sql.current, values: [subscription, shard] }]);
      return Number(row?.[0] ?? 0);
    },
    async raise({ subscription, shard, token }) {
      const key = [subscription, shard];
      const results = await run([
        { sql: sql.create, values: key },
        // The last owner may still be committing, and the next owner must see its writes.
        { sql: sql.lock, values: key },
        { sql: sql.raise, values: [...key, token] },
      ]);
      return results[2]?.length === 1;
    },
  };
}

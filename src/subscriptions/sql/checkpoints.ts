import { parseStored } from '../../foundation/parse-json.ts';
import type { EventFilter } from '../../store/event-filter.ts';
import { toPosition, toSequence } from '../../store/position.ts';
import type { CheckpointStore, SubscriptionState } from '../subscription-storage.ts';
import type { SqlCells, SqlDatabase } from '../../store/sql-database.ts';
import { fenced, sqlSettlements } from './settlement.ts';

export function sqlCheckpoints({ dialect, run }: SqlDatabase): CheckpointStore {
  const { moveCheckpoint } = sqlSettlements(dialect);
  const subscriptions = dialect.table('subscriptions');
  const shardsTable = dialect.table('subscription_shards');
  const marks = dialect.table('subscription_marks');
  const blocked = dialect.table('subscription_blocked');
  const waiting = dialect.table('subscription_waiting');
  const letters = dialect.table('dead_letters');
  const stateSql = `select s.name, s.shards, s.paused, s.filter, p.shard, p.position
    from ${subscriptions} s left join ${shardsTable} p on p.subscription = s.name`;
  const ofName = `${stateSql} where s.name = ?1 order by p.shard`;
  const sql = {
    open: `insert into ${subscriptions} (name, shards, filter) values (?1, ?2, ?3)
      on conflict (name) do update set filter = excluded.filter`,
    position: `select position from ${shardsTable} where subscription = ?1 and shard = ?2`,
    marks: `select m.position from ${marks} m where m.subscription = ?1 and m.shard = ?2
      and m.position > coalesce((select p.position from ${shardsTable} p
        where p.subscription = ?1 and p.shard = ?2), -1)`,
    blocked: `select stream from ${blocked} where subscription = ?1 and shard = ?2`,
    removeMarks: `delete from ${marks} where subscription = ?1 and shard = ?2 and position <= ?3`,
    pause: `update ${subscriptions} set paused = ?2 where name = ?1 returning 1`,
    lock: `select shard from ${shardsTable} where subscription = ?1 order by shard${dialect.takeRow}`,
    reset: `update ${shardsTable} set position = ?2, token = token + 1, expires_at_ms = 0
      where subscription = ?1`,
    resetMarks: `delete from ${marks} where subscription = ?1`,
    resetWaiting: `delete from ${waiting} where subscription = ?1 and position > ?2`,
    resetBlocked: `delete from ${blocked} where subscription = ?1 and not exists (
      select 1 from ${waiting} w where w.subscription = ${blocked}.subscription
        and w.shard = ${blocked}.shard and w.stream = ${blocked}.stream)`,
    resetLetters: `update ${letters} set status = 'discarded', discarded_at_ms = ?3, discarded_by = ?4,
      discard_reason = 'the subscription was reset', replay_requested_at_ms = null
      where handler = ?1 and status = 'pending' and position > ?2`,
    list: `${stateSql} order by s.name, p.shard`,
  };

  const get = async (subscription: string): Promise<SubscriptionState | undefined> => {
    const [rows = []] = await run([{ sql: ofName, values: [subscription] }]);
    return statesOf(rows)[0];
  };

  return {
    async open(subscription, shards, filter) {
      const results = await run([
        {
          sql: sql.open,
          values: [subscription, shards, filter === undefined ? null : JSON.stringify(filter)],
        },
        { sql: ofName, values: [subscription] },
      ]);
      return statesOf(results[1] ?? [])[0] as SubscriptionState;
    },
    async load({ subscription, shard }) {
      const values = [subscription, shard];
      const [[row] = [], done = [], streams = []] = await run([
        { sql: sql.position, values },
        { sql: sql.marks, values },
        { sql: sql.blocked, values },
      ]);
      const position = row?.[0] ?? null;
      return {
        position: position === null ? undefined : toPosition(Number(position)),
        done: done.map(([each]) => toPosition(Number(each))),
        blocked: streams.map(([stream]) => String(stream)),
      };
    },
    async save(fence, position) {
      const { subscription, shard } = fence;
      const at = toSequence(position);
      await fenced(fence, () =>
        run([
          moveCheckpoint(fence, at),
          { sql: sql.removeMarks, values: [subscription, shard, at] },
        ]),
      );
    },
    async setPaused(subscription, paused) {
      const [rows = []] = await run([{ sql: sql.pause, values: [subscription, paused ? 1 : 0] }]);
      return rows.length > 0;
    },
    async reset(subscription, to, { by, atMs }) {
      if ((await get(subscription)) === undefined) return false;
      const at = toSequence(to);
      await run([
        { sql: sql.lock, values: [subscription] },
        { sql: sql.reset, values: [subscription, at] },
        { sql: sql.resetMarks, values: [subscription] },
        { sql: sql.resetWaiting, values: [subscription, at] },
        { sql: sql.resetBlocked, values: [subscription] },
        { sql: sql.resetLetters, values: [subscription, at, atMs, by] },
      ]);
      return true;
    },
    get,
    async list() {
      const [rows = []] = await run([{ sql: sql.list, values: [] }]);
      return statesOf(rows);
    },
  };
}

/** Input: one row per shard that ever had an owner, at least one per subscription. */
function statesOf(rows: readonly SqlCells[]): SubscriptionState[] {
  const states = new Map<
    string,
    SubscriptionState & { positions: SubscriptionState['positions'] }
  >();
  for (const [name, shards, paused, filter, shard, position] of rows) {
    const subscription = String(name);
    const state = states.get(subscription) ?? {
      subscription,
      shards: Number(shards),
      paused: Number(paused) === 1,
      filter:
        typeof filter === 'string' ? (parseStored(filter) as EventFilter | undefined) : undefined,
      positions: Array.from({ length: Number(shards) }, () => undefined),
    };
    states.set(subscription, state);
    if (typeof shard !== 'number' || typeof position !== 'number') continue;
    state.positions = state.positions.with(shard, toPosition(position));
  }
  return [...states.values()];
}

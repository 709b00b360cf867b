// SQL for marks and fences, which commit together with a handler's effects.

import { toSequence } from '../../store/position.ts';
import {
  leaseLost,
  type Fence,
  type Settlement,
  type SettleResult,
} from '../subscription-storage.ts';
import {
  SqlExpectationFailed,
  type SqlDialect,
  type SqlStatement,
} from '../../store/sql-database.ts';

export interface SqlSettlements {
  /** The first statement of an owner's transaction; it fails once another owner took over. */
  readonly fence: (fence: Fence) => SqlStatement;
  statements(fence: Fence, settlement: Settlement): readonly SqlStatement[];
  mark(fence: Fence, position: number): SqlStatement;
  /** Also checks the fence. Never moves the checkpoint back. */
  readonly moveCheckpoint: (fence: Fence, position: number) => SqlStatement;
}

export function sqlSettlements(dialect: SqlDialect): SqlSettlements {
  const shards = dialect.table('subscription_shards');
  const marks = dialect.table('subscription_marks');
  const waiting = dialect.table('subscription_waiting');
  const letters = dialect.table('dead_letters');
  const fenceSql = `select 1 from ${shards} where subscription = ?1 and shard = ?2 and token = ?3${dialect.shareRow}`;
  const moveSql = `update ${shards} set position = case when position > ?4 then position else ?4 end
    where subscription = ?1 and shard = ?2 and token = ?3 returning 1`;
  const markNewSql = `insert into ${marks} (subscription, shard, position)
    select cast(?1 as text), cast(?2 as integer), cast(v.value as bigint)
    from ${dialect.values('?3')} v where true on conflict do nothing returning 1`;
  const markSql = `insert into ${marks} (subscription, shard, position) values (?1, ?2, ?3) on conflict do nothing`;
  const drainSql = `delete from ${waiting}
    where subscription = ?1 and shard = ?2 and stream = ?3 and position = ?4 returning 1`;
  const replayedSql = `update ${letters}
    set status = 'replayed', replayed_at_ms = ?3, replay_requested_at_ms = null
    where event_id = ?1 and handler = ?2 and status = 'pending'`;

  const fence = ({ subscription, shard, token }: Fence): SqlStatement => ({
    sql: fenceSql,
    values: [subscription, shard, token],
    expect: { what: 'fence', rows: 1 },
  });
  const mark = ({ subscription, shard }: Fence, position: number): SqlStatement => ({
    sql: markSql,
    values: [subscription, shard, position],
  });
  const moveCheckpoint = ({ subscription, shard, token }: Fence, position: number) => ({
    sql: moveSql,
    values: [subscription, shard, token, position],
    expect: { what: 'fence', rows: 1 } as const,
  });
  return {
    fence,
    mark,
    moveCheckpoint,
    statements(owner, settlement) {
      const { subscription, shard } = owner;
      if (settlement.kind === 'delivered') {
        const positions = settlement.positions.map(toSequence);
        const { checkpoint } = settlement;
        return [
          checkpoint === undefined ? fence(owner) : moveCheckpoint(owner, toSequence(checkpoint)),
          // Keep marks below the checkpoint too, because a retry after a lost response must find them.
          {
            sql: markNewSql,
            values: [subscription, shard, JSON.stringify(positions)],
            expect: { what: 'new', rows: positions.length },
          },
        ];
      }
      const { stream, eventId, atMs } = settlement;
      const position = toSequence(settlement.position);
      return [
        fence(owner),
        // Update the dead letter first: all transactions lock the two tables in this order.
        { sql: replayedSql, values: [eventId, subscription, atMs] },
        {
          sql: drainSql,
          values: [subscription, shard, stream, position],
          expect: { what: 'new', rows: 1 },
        },
        mark(owner, position),
      ];
    },
  };
}

/** Translates a failed expectation into the port's result or error. */
export async function settling(
  fence: Fence,
  commit: () => Promise<unknown>,
): Promise<SettleResult> {
  try {
    await commit();
    return 'settled';
  } catch (error) {
    if (!(error instanceof SqlExpectationFailed)) throw error;
    if (error.what === 'new') return 'duplicate';
    throw leaseLost(fence);
  }
}

/** For writes that cannot be duplicates: every failed expectation is a lost lease. */
export async function fenced<T>(fence: Fence, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw error instanceof SqlExpectationFailed ? leaseLost(fence) : error;
  }
}

import { parseStored } from '../../foundation/parse-json.ts';
import { toPosition, toSequence } from '../../store/position.ts';
import type { Attempt } from '../dead-letter.ts';
import type { WaitingEvents } from '../subscription-storage.ts';
import type { SqlCell, SqlDatabase, SqlStatement } from '../../store/sql-database.ts';
import { fenced, sqlSettlements } from './settlement.ts';

export function sqlWaiting({ dialect, run }: SqlDatabase): WaitingEvents {
  const { fence: fenceStatement } = sqlSettlements(dialect);
  const blocked = dialect.table('subscription_blocked');
  const waiting = dialect.table('subscription_waiting');
  const rows = dialect.rows('?3', {
    stream: 'text',
    position: 'bigint',
    event_id: 'text',
    failures: 'bigint',
    history: 'text',
  });
  const marks = dialect.table('subscription_marks');
  const insert = (
    where: string,
  ): string => `insert into ${waiting} as w (subscription, shard, stream, position, event_id, failures, history)
    select cast(?1 as text), cast(?2 as integer), r.stream, r.position, r.event_id, r.failures, r.history
    from ${rows} where ${where}
    on conflict (subscription, shard, stream, position)`;
  // An event that was already processed as a waiting event may be read again, because the checkpoint is lower.
  const isUnprocessed = `not exists (select 1 from ${marks} m
    where m.subscription = ?1 and m.shard = ?2 and m.position = r.position)`;
  const sql = {
    block: `insert into ${blocked} (subscription, shard, stream, due_at_ms)
      select cast(?1 as text), cast(?2 as integer), r.stream, r.due
      from ${dialect.rows('?3', { stream: 'text', due: 'bigint' })} where true
      on conflict (subscription, shard, stream) do update set due_at_ms = excluded.due_at_ms`,
    blockIfNew: `insert into ${blocked} (subscription, shard, stream, due_at_ms)
      select cast(?1 as text), cast(?2 as integer), r.stream, 0
      from ${dialect.rows('?3', { stream: 'text' })} where true
      on conflict (subscription, shard, stream) do nothing`,
    upsert: `${insert('true')} do update set failures = excluded.failures, history = excluded.history`,
    append: `${insert(isUnprocessed)} do nothing`,
    due: `select stream from ${blocked}
      where subscription = ?1 and shard = ?2 and due_at_ms <= ?3 order by due_at_ms limit ?4`,
    next: `select position, event_id, failures, history from ${waiting}
      where subscription = ?1 and shard = ?2 and stream = ?3 and position > ?5 order by position limit ?4`,
    lock: `select 1 from ${blocked} where subscription = ?1 and shard = ?2 and stream = ?3${dialect.takeRow}`,
    unblock: `delete from ${blocked} where subscription = ?1 and shard = ?2 and stream = ?3
      and not exists (select 1 from ${waiting} w
        where w.subscription = ?1 and w.shard = ?2 and w.stream = ?3)`,
    remaining: `select 1 from ${waiting} where subscription = ?1 and shard = ?2 and stream = ?3 limit 1`,
    count: `select count(*) from ${waiting} where subscription = ?1`,
    countOf: `select count(*) from ${waiting} where subscription = ?1 and shard = ?2 and stream = ?3`,
  };
  return {
    async park(fence, streams) {
      const { subscription, shard } = fence;
      const [due, queued] = [
        streams.filter((each) => each.due !== 'queued'),
        streams.filter((each) => each.due === 'queued'),
      ];
      const write = (text: string, items: readonly unknown[]): SqlStatement[] =>
        items.length === 0
          ? []
          : [{ sql: text, values: [subscription, shard, JSON.stringify(items)] }];
      const eventsOf = (selected: typeof streams): unknown[] =>
        selected.flatMap(({ stream, events }) =>
          events.map(({ position, eventId, failures, history }) => ({
            stream,
            position: toSequence(position),
            event_id: eventId,
            failures,
            history: JSON.stringify(history),
          })),
        );
      await fenced(fence, () =>
        run([
          fenceStatement(fence),
          // Lock rows in a fixed order, because a replay locks the same rows.
          ...write(sql.block, due.toSorted(byStream)),
          ...write(sql.blockIfNew, queued.toSorted(byStream)),
          ...write(sql.upsert, eventsOf(due)),
          ...write(sql.append, eventsOf(queued)),
        ]),
      );
    },
    async due({ subscription, shard }, nowMs, limit) {
      const [found = []] = await run([
        { sql: sql.due, values: [subscription, shard, nowMs, limit] },
      ]);
      return found.map(([stream]) => String(stream));
    },
    async next({ subscription, shard }, stream, limit, after) {
      const [found = []] = await run([
        {
          sql: sql.next,
          values: [
            subscription,
            shard,
            stream,
            limit,
            after === undefined ? -1 : toSequence(after),
          ],
        },
      ]);
      return found.map(([position, eventId, failures, history]) => ({
        position: toPosition(Number(position)),
        eventId: String(eventId),
        failures: Number(failures),
        history: readHistory(history),
      }));
    },
    async unblock(fence, stream) {
      const values = [fence.subscription, fence.shard, stream];
      const results = await fenced(fence, () =>
        run([
          fenceStatement(fence),
          // Lock before reading, because another process may be requesting a replay.
          { sql: sql.lock, values },
          { sql: sql.unblock, values },
          { sql: sql.remaining, values },
        ]),
      );
      return results[3]?.length === 0;
    },
    async count(subscription) {
      const [found = []] = await run([{ sql: sql.count, values: [subscription] }]);
      return Number(found[0]?.[0]);
    },
    async countOf({ subscription, shard }, stream) {
      const [found = []] = await run([{ sql: sql.countOf, values: [subscription, shard, stream] }]);
      return Number(found[0]?.[0]);
    },
  };
}

/** Without a damaged record of the attempts: the event is attempted all the same. */
export function readHistory(cell: SqlCell | undefined): readonly Attempt[] {
  const history = parseStored(cell);
  return Array.isArray(history) ? (history as Attempt[]) : [];
}

function byStream(a: { readonly stream: string }, b: { readonly stream: string }): number {
  return a.stream < b.stream ? -1 : 1;
}

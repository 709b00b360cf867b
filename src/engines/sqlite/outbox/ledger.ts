// The outbox ledger in an SQLite file: the event store's or another one. Requests go through the writer thread, which
// commits all waiting requests together.

import type { DatabaseSync } from 'node:sqlite';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { OutboxRow } from '../../../outbox/check-outbox.ts';
import {
  attemptJson,
  createOutboxLedger,
  dueMsOf,
  type OutboxEngine,
  type OutboxLedgerOptions,
} from '../../../outbox/create-outbox-ledger.ts';
import { outboxLimits as limits } from '../../../outbox/outbox-limits.ts';
import type { Enqueued, OutboxLedger } from '../../../outbox/outbox-ledger.ts';
import { nextTurn } from '../../../foundation/async/next-turn.ts';
import { createWaiters, waitWithPoll } from '../../../foundation/async/waiters.ts';
import type { SqliteFile } from '../connection/file.ts';
import { decodeToken, encodeToken } from '../connection/lease-token.ts';
import { toClaimed, toMessage } from './rows.ts';
import * as sql from './sql.ts';
import type { SqliteTransaction } from '../subscriptions/subscriptions.ts';
import { watchCommits } from '../connection/watch.ts';
import { databaseOf } from '../connection/path.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../thread/protocol.ts';

/**
 * The transaction that an enqueue joins: that of a subscription's handler, or a `node:sqlite` connection to the ledger's
 * file with an open transaction.
 */
export type SqliteOutboxTransaction = SqliteTransaction | Pick<DatabaseSync, 'prepare'>;

export function sqliteOutboxLedger(
  file: SqliteFile,
  options: OutboxLedgerOptions & { readonly clock?: Clock | undefined } = {},
): OutboxLedger<SqliteOutboxTransaction> {
  const { clock = systemClock } = options;
  const ids = createIds({ clock });
  const waiters = createWaiters();
  const { isDurable, path, writer, database, reader, reading } = file;
  const watch = watchCommits(file, {
    reader,
    isRelevant: () => isAnyDue(),
    onCommit: () => waiters.wakeAll(),
  });
  let nextLane = 0;

  const isAnyDue = (): boolean => reader.query(sql.anyDueSql, []).length > 0;

  const run = (...statements: readonly SqlStatement[]): Promise<readonly (readonly SqlRow[])[]> =>
    database.commit(statements);
  const statement = (text: string, ...values: readonly SqlValue[]): SqlStatement => ({
    sql: text,
    values,
  });
  const housekeeping = (text: string, ...values: readonly SqlValue[]): SqlStatement => ({
    ...statement(text, ...values),
    isHousekeeping: true,
  });

  async function enqueue(
    rows: readonly OutboxRow[],
    transaction?: SqliteOutboxTransaction,
  ): Promise<readonly Enqueued[]> {
    const withIds = rows.map((row) => ({ ...row, id: ids.next() }));
    const json = JSON.stringify(withIds);
    const inserts = [statement(sql.insertMessagesSql, json), statement(sql.insertReadySql, json)];
    const find = statement(sql.findSourcesSql, json);
    if (transaction === undefined) {
      const [, , found = []] = await run(...inserts, find);
      waiters.wakeAll();
      return enqueued(found);
    }
    if ('prepare' in transaction) {
      // Without a transaction, a crash between the two inserts would leave a message that is never sent.
      if ('isTransaction' in transaction && transaction.isTransaction === false) {
        throw new MillraceError(
          'TRANSACTION_INVALID',
          'the connection has no open transaction: begin one before enqueueIn',
        );
      }
      for (const each of inserts) transaction.prepare(each.sql).run(...each.values);
      return enqueued(transaction.prepare(find.sql).all(...find.values) as unknown as SqlRow[]);
    }
    // The statements run at the commit, so only the committed state shows which messages exist.
    const before = await transaction.query(find.sql, ...find.values);
    for (const each of inserts) transaction.run(each.sql, ...each.values);
    const known = new Set(before.map((row) => Number(row['key'])));
    const added = withIds.flatMap(({ id }, key) => (known.has(key) ? [] : [{ key, id }]));
    return enqueued([...before, ...added]);

    function enqueued(found: readonly SqlRow[]): readonly Enqueued[] {
      const idOf = new Map(found.map((row) => [Number(row['key']), String(row['id'])]));
      return withIds.map((row, key) => {
        const id = idOf.get(key) ?? row.id;
        return { id, isDuplicate: id !== row.id };
      });
    }
  }

  const engine: OutboxEngine<SqliteOutboxTransaction> = {
    database: isDurable ? databaseOf(path) : undefined,
    capabilities: {
      durable: isDurable,
      crossProcess: isDurable,
      callerTransaction: isDurable,
    },
    enqueue,
    async claim({ workerId, limit, leaseMs }) {
      // Yield: a claim loop must not block the event loop.
      await nextTurn();
      // Query first: most claims find nothing and need no write.
      if (!(await reading(isAnyDue))) return [];
      const lanes = Array.from({ length: limits.lanes }, (_, at) => (nextLane + at) % limits.lanes);
      nextLane = (nextLane + 1) % limits.lanes;
      const perLane = Math.max(1, Math.floor(limit / limits.lanes));
      const [, rows = []] = await run(
        statement(sql.nextTokenSql),
        statement(sql.claimSql, JSON.stringify(lanes), limit, perLane, workerId, leaseMs),
      );
      return rows.map((row) => toClaimed(row, workerId));
    },
    async settle(outcomes) {
      const json = JSON.stringify(
        outcomes.map((each) => ({
          ...decodeToken(each.claim.token),
          kind: each.kind,
          error: 'error' in each ? each.error : null,
          dueAtMs: dueMsOf(each),
          attempt: attemptJson(each),
        })),
      );
      const [first = '', ...others] = sql.settleSqls;
      const records = outcomes.some((each) => attemptJson(each) !== null)
        ? sql.recordAttemptsSqls
        : [];
      const [rows = []] = await run(
        ...[first, ...records, ...others].map((text) => statement(text, json)),
      );
      const settled = new Set(rows.map(encodeToken));
      return outcomes.map(({ claim }) => (settled.has(claim.token) ? 'settled' : 'stale'));
    },
    async renew(claims, { workerId, leaseMs, perTenant }) {
      const json = JSON.stringify(claims.map(({ token }) => decodeToken(token)));
      const [claimedRows = [], , , taken = []] = await run(
        statement(sql.renewSqls.read, json),
        statement(sql.renewSqls.free, json),
        statement(sql.nextTokenSql),
        statement(sql.renewSqls.take, json, workerId, leaseMs, Number(perTenant)),
      );
      const byToken = new Map(claimedRows.map((row) => [encodeToken(row), row]));
      const bySeq = new Map(taken.map((row) => [row['seq'], row]));
      return claims.map(({ token }) => {
        const was = byToken.get(token);
        if (was === undefined) return 'stale';
        if (was['paused'] === 1) return 'paused';
        return toClaimed({ ...was, ...bySeq.get(was['seq']) }, workerId);
      });
    },
    async extend(claims, leaseMs) {
      const json = JSON.stringify(claims.map(({ token }) => decodeToken(token)));
      const [rows = []] = await run(statement(sql.extendSql, json, leaseMs));
      const valid = new Set(rows.map(encodeToken));
      return claims.map(({ token }) => valid.has(token));
    },
    async whenDue(pollMs, signal) {
      watch.setWaiting(true);
      try {
        await waitWithPoll(waiters, { clock, pollMs, signal });
      } finally {
        if (waiters.size === 0) watch.setWaiting(false);
      }
    },
    async list(
      { ids: wanted, status, integrationType, tenantId, since },
      { limit, after, oldestFirst, charsMax },
    ) {
      const rows = await database.select(sql.listSql(oldestFirst, wanted !== undefined), [
        wanted === undefined ? null : JSON.stringify(wanted),
        status ?? null,
        integrationType ?? null,
        tenantId ?? null,
        since?.getTime() ?? null,
        after ?? null,
        limit,
        charsMax,
      ]);
      return rows.map(toMessage);
    },
    async bySource(sources, limit) {
      const wanted = sources.map(({ sourceStreamId, sourceEventId }) => ({
        sourceStreamId,
        sourceEventId,
      }));
      const rows = await database.select(sql.bySourceSql, [JSON.stringify(wanted), limit]);
      return rows.map(toMessage);
    },
    async erase(sources, payload) {
      const json = JSON.stringify(sources);
      await run(
        statement(sql.eraseSql, json, payload),
        ...sql.eraseErrorsSqls.map((text) => statement(text, json)),
      );
      await writer.call({ operation: 'log.erase' });
    },
    async attempts(id) {
      const rows = await database.select(sql.attemptsSql, [id]);
      return rows.map((row) => String(row['attempt']));
    },
    async counts() {
      const counts = { PENDING: 0, CLAIMED: 0, SENT: 0, FAILED: 0, DEAD: 0, DISCARDED: 0 };
      for (const row of await database.select(sql.countsSql, []))
        counts[String(row['status']) as keyof typeof counts] += Number(row['n']);
      return counts;
    },
    async replay({ ids: wanted, integrationType, tenantId, since }, limit) {
      const [dead = []] = await run(
        statement(
          sql.deadSql,
          wanted === undefined ? null : JSON.stringify(wanted),
          integrationType ?? null,
          tenantId ?? null,
          since?.getTime() ?? null,
          limit,
        ),
      );
      const chosen = JSON.stringify(dead.map((row) => row['seq']));
      // Another process may have replayed some of these messages since: they are no longer dead-lettered.
      const [, replayed = []] = await run(...sql.replaySqls.map((text) => statement(text, chosen)));
      waiters.wakeAll();
      return replayed.length;
    },
    async retryNow(chosen) {
      const [rows = []] = await run(statement(sql.retryNowSql, JSON.stringify(chosen)));
      waiters.wakeAll();
      return rows.map((row) => String(row['id']));
    },
    async discard(chosen, discarded) {
      const json = JSON.stringify(chosen);
      const rows = await run(
        ...sql.endSqls.map((text) => statement(text, json)),
        statement(sql.discardSql, json, discarded),
      );
      waiters.wakeAll();
      return (rows.at(-1) ?? []).map((row) => String(row['id']));
    },
    async purge(sentBeforeMs, limit) {
      const steps = sql.purgeSqls.map((text) => housekeeping(text, sentBeforeMs, limit));
      const [purged = []] = await run(...steps);
      return purged.length;
    },
    async sentFirst(sentBeforeMs, limit) {
      const rows = await database.select(sql.sentFirstSql, [sentBeforeMs, limit]);
      return rows.map(toMessage);
    },
    async forget(old) {
      const json = JSON.stringify(old);
      await run(...sql.forgetSqls.map((text) => housekeeping(text, json)));
    },
    async pause(integrationType, by) {
      const [rows = []] = await run(statement(sql.pauseSql, integrationType, by));
      return rows.length > 0;
    },
    async resume(integrationType) {
      const [rows = []] = await run(statement(sql.resumeSql, integrationType));
      waiters.wakeAll();
      return rows.length > 0;
    },
    async paused() {
      const rows = await database.select(sql.pausedSql, []);
      return rows.map((row) => ({
        integrationType: String(row['integration_type']),
        pausedAt: new Date(Number(row['paused_at_ms'])),
        pausedBy: String(row['paused_by']),
      }));
    },
    async [Symbol.asyncDispose]() {
      watch.close();
      waiters.wakeAll();
    },
  };
  return createOutboxLedger(engine, options);
}

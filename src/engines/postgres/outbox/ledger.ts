// The outbox ledger in PostgreSQL: claims are fair between tenants and take no global lock.

import type { ClientBase } from 'pg';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import type { OutboxRow } from '../../../outbox/check-outbox.ts';
import {
  createOutboxLedger,
  type EngineClaim,
  type OutboxEngine,
  type OutboxLedgerOptions,
} from '../../../outbox/create-outbox-ledger.ts';
import { outboxLimits as limits } from '../../../outbox/outbox-limits.ts';
import type { Enqueued, OutboxLedger } from '../../../outbox/outbox-ledger.ts';
import { createKeptClient } from '../connection/kept-client.ts';
import {
  translateErrors,
  type PostgresConnection,
  type PreparedSql,
  type Row,
} from '../connection/connection.ts';
import { lockClass, quoteName } from '../connection/schema.ts';
import { checkClient, type TransactionQuery } from '../transactions/transaction-query.ts';
import { createLaneFloors } from './lane-floors.ts';
import { createPostgresOutboxListener } from './listener.ts';
import {
  attemptArrays,
  claimArrays,
  columnsOf,
  encodeRows,
  outcomeArrays,
  previousToken,
  sourceKey,
  sourceOf,
  includesClaim,
  toClaimed,
  toMessage,
  type Source,
} from './rows.ts';
import * as queries from './queries.ts';

/**
 * A transaction of the caller to enqueue in: a `pg` client, or a function that runs a query in the transaction.
 * `fromTypeorm`, `fromKysely`, `fromDrizzle`, `fromKnex` and `fromPrisma` create such a function.
 */
export type PostgresTransaction = Pick<ClientBase, 'query'> | TransactionQuery;

export function postgresOutboxLedger(
  connection: PostgresConnection,
  schema: string,
  options: OutboxLedgerOptions & {
    readonly clock?: Clock | undefined;
    readonly observer?: Observer | undefined;
  } = {},
): OutboxLedger<PostgresTransaction> {
  const { clock = systemClock, observer = silentObserver } = options;
  const lock = lockClass(schema);
  const channel = `millrace_outbox_${lock}`;
  const statement = (name: string, text: string): PreparedSql => ({
    name: `outbox ${name} ${schema}`,
    text: text.replaceAll('{schema}', quoteName(schema)),
  });
  const enqueueSql = statement('enqueue', queries.enqueueSql);
  const findSourcesSql = statement('find-sources', queries.findSourcesSql);
  const settleSql = statement('settle', queries.settleSql);
  const settleWithAttemptsSql = statement('settle-with-attempts', queries.settleWithAttemptsSql);
  const claimSql = statement('claim', queries.claimSql);
  const renewSql = statement('renew', queries.renewSql);
  const extendSql = statement('extend', queries.extendSql);
  const promoteSql = statement('promote', queries.promoteSql);
  const parkSql = statement('park', queries.parkSql);
  const query = (sql: PreparedSql, values: readonly unknown[]): Promise<readonly Row[]> =>
    translateErrors(() => connection.query(sql, values));
  const listener = createPostgresOutboxListener(connection, {
    lockClass: lock,
    channel,
    clock,
    onFailure: (err) => observer.log?.warn({ schema, err }, 'listening connection lost'),
  });
  const floors = createLaneFloors(clock);
  const keptClient = createKeptClient(connection.pool);

  async function enqueue(
    rows: readonly OutboxRow[],
    transaction?: PostgresTransaction,
  ): Promise<readonly Enqueued[]> {
    const run = async (
      sql: PreparedSql,
      values: readonly unknown[],
    ): Promise<readonly Source[]> => {
      if (transaction === undefined) return (await connection.query(sql, values)).map(toSource);
      if (typeof transaction === 'function') {
        return (await transaction(sql.text, values)).map(columnsOf);
      }
      checkClient(transaction);
      return (await transaction.query<Source>(sql.text, [...values])).rows;
    };
    return translateErrors(async () => {
      const known = new Map<string, Enqueued>();
      for (const source of await run(enqueueSql, [encodeRows(rows), lock, channel])) {
        known.set(sourceKey(source), { id: source.id, isDuplicate: false });
      }
      const sources = rows.map(sourceOf);
      const duplicates = sources.filter((source) => !known.has(sourceKey(source)));
      if (duplicates.length > 0) {
        for (const source of await run(findSourcesSql, [JSON.stringify(duplicates)])) {
          known.set(sourceKey(source), { id: source.id, isDuplicate: true });
        }
      }
      if (transaction === undefined) listener.wakeAll();
      const returned = new Set<string>();
      return sources.map((source) => {
        const key = sourceKey(source);
        const { id, isDuplicate } = known.get(key) ?? { id: '', isDuplicate: true };
        const isAgain = returned.has(key);
        returned.add(key);
        return { id, isDuplicate: isDuplicate || isAgain };
      });
    });
  }

  async function claimOnce({ workerId, limit, leaseMs }: EngineClaim): Promise<readonly Row[]> {
    const scan = floors.next();
    const { lanes, from } = scan;
    const perLane = Math.max(1, Math.floor(limit / (lanes.length || limits.lanes)));
    const values = [lanes, from, limit, perLane, workerId, leaseMs];
    let rows: readonly Row[];
    try {
      // Use a kept client: the pool would send the query only after all deliveries of the last claim have started.
      rows = await translateErrors(() =>
        keptClient.use((client) => connection.query(claimSql, values, client)),
      );
    } catch (error) {
      floors.failed(scan);
      throw error;
    }
    const positions = rows.map((row) => ({ lane: Number(row[19]), seq: Number(row[17]) }));
    floors.claimed(scan, positions, rows.length >= limit);
    return unpaused(rows);
  }

  /** Parks claimed messages of paused destinations until the destination is resumed; returns the others. */
  async function unpaused(claimed: readonly Row[]): Promise<readonly Row[]> {
    const paused = claimed.filter((row) => row.at(-1) === true);
    if (paused.length === 0) return claimed;
    const destinations = new Set(paused.map((row) => row[3]));
    await query(parkSql, [
      paused.map((row) => row[17]),
      paused.map((row) => row[18]),
      [...destinations],
    ]);
    return claimed.filter((row) => row.at(-1) !== true);
  }

  /** The ids of messages that an operator changed: they, or their next ones, may be due. */
  function changed(rows: readonly Row[]): readonly string[] {
    floors.reset();
    listener.wakeAll();
    return rows.map(([id]) => String(id));
  }

  const engine: OutboxEngine<PostgresTransaction> = {
    database: connection.database,
    capabilities: { durable: true, crossProcess: true, callerTransaction: true },
    enqueue,
    async claim(request) {
      let rows = await claimOnce(request);
      // A busy dispatcher promotes due messages once a second only, so that claims are not delayed.
      if (rows.length === 0 || floors.isUpkeepDue()) {
        const [[promoted] = []] = await query(promoteSql, [request.limit]);
        const limit = request.limit - rows.length;
        if (Number(promoted) > 0) floors.reset();
        if (Number(promoted) > 0 && limit > 0) {
          rows = [...rows, ...(await claimOnce({ ...request, limit }))];
        }
      }
      return rows.map((row) => toClaimed(row, request.workerId));
    },
    async settle(outcomes) {
      const attempts = attemptArrays(outcomes);
      const results = await (attempts === undefined
        ? query(settleSql, outcomeArrays(outcomes))
        : query(settleWithAttemptsSql, [...outcomeArrays(outcomes), ...attempts]));
      // Rows with a lane can be claimed again, the others are stale.
      for (const [seq, , lane = null] of results) {
        if (lane !== null) floors.lower({ lane: Number(lane), seq: Number(seq) });
      }
      const isStale = includesClaim(results.filter(([, , lane = null]) => lane === null));
      return outcomes.map(({ claim }) => (isStale(claim) ? 'stale' : 'settled'));
    },
    async renew(claims, { workerId, leaseMs, perTenant }) {
      const rows = await query(renewSql, [...claimArrays(claims), workerId, leaseMs, perTenant]);
      const byToken = new Map(rows.map((row) => [previousToken(row), row]));
      return claims.map(({ token }) => {
        const row = byToken.get(token);
        if (row === undefined) return 'stale';
        return row.at(-1) === true ? 'paused' : toClaimed(row, workerId);
      });
    },
    async extend(claims, leaseMs) {
      const isValid = includesClaim(await query(extendSql, [...claimArrays(claims), leaseMs]));
      return claims.map(isValid);
    },
    whenDue: (pollMs, signal) => listener.whenDue(pollMs, signal),
    async list(filter, { limit, after, oldestFirst, charsMax }) {
      const { ids = null, status, integrationType = null, tenantId = null, since } = filter;
      const name = `list ${oldestFirst ? 'oldest' : 'newest'} ${status ?? ''}`;
      const listSql = statement(name, queries.listSql(status, oldestFirst));
      const sinceMs = since?.getTime() ?? null;
      const values = [
        ids,
        status ?? null,
        integrationType,
        tenantId,
        sinceMs,
        after ?? null,
        limit,
        charsMax,
      ];
      return (await query(listSql, values)).map(toMessage);
    },
    async bySource(sources, limit) {
      const wanted = sources.map(({ sourceStreamId, sourceEventId }) => ({
        source_stream_id: sourceStreamId,
        source_event_id: sourceEventId,
      }));
      const bySourceSql = statement('by-source', queries.bySourceSql);
      return (await query(bySourceSql, [JSON.stringify(wanted), limit])).map(toMessage);
    },
    async erase(sources, payload) {
      const wanted = sources.map(({ sourceStreamId, sourceEventId }) => ({
        source_stream_id: sourceStreamId,
        source_event_id: sourceEventId,
      }));
      await query(statement('erase', queries.eraseSql), [JSON.stringify(wanted), payload]);
    },
    attempts: async (id) =>
      (await query(statement('attempts', queries.attemptsSql), [id])).map(([each]) => String(each)),
    async counts() {
      const counts = { all: 0, PENDING: 0, CLAIMED: 0, FAILED: 0, DEAD: 0, DISCARDED: 0 };
      for (const [status, count] of await query(statement('counts', queries.countsSql), [])) {
        counts[String(status) as keyof typeof counts] += Number(count);
      }
      const { all, ...others } = counts;
      const unsent = Object.values(others).reduce((sum, count) => sum + count, 0);
      // The estimate of the total may be lower than the exact counts.
      return { ...others, SENT: Math.max(0, all - unsent) };
    },
    async replay({ ids = null, integrationType = null, tenantId = null, since }, limit) {
      const values = [
        ids,
        integrationType,
        tenantId,
        since?.getTime() ?? null,
        limit,
        lock,
        channel,
      ];
      const [[count] = []] = await query(statement('replay', queries.replaySql), values);
      floors.reset();
      listener.wakeAll();
      return Number(count);
    },
    async retryNow(chosen) {
      const rows = await query(statement('retry-now', queries.retryNowSql), [
        chosen,
        lock,
        channel,
      ]);
      return changed(rows);
    },
    async discard(chosen, discarded) {
      const values = [chosen, lock, channel, discarded];
      return changed(await query(statement('discard', queries.discardSql), values));
    },
    async purge(sentBeforeMs, limit) {
      const [[count] = []] = await query(statement('purge', queries.purgeSql), [
        sentBeforeMs,
        limit,
      ]);
      return Number(count);
    },
    async sentFirst(sentBeforeMs, limit) {
      const sentFirst = statement('sent-first', queries.sentFirstSql);
      return (await query(sentFirst, [sentBeforeMs, limit])).map(toMessage);
    },
    forget: async (ids) => void (await query(statement('forget', queries.forgetSql), [ids])),
    pause: async (integrationType, by) =>
      (await query(statement('pause', queries.pauseSql), [integrationType, by])).length > 0,
    async resume(integrationType) {
      const values = [integrationType, lock, channel];
      const [[wasPaused] = []] = await query(statement('resume', queries.resumeSql), values);
      floors.reset();
      listener.wakeAll();
      return wasPaused === true;
    },
    async paused() {
      return (await query(statement('paused', queries.pausedSql), [])).map(([type, at, by]) => ({
        integrationType: String(type),
        pausedAt: new Date(Number(at)),
        pausedBy: String(by),
      }));
    },
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      keptClient.release();
    },
  };
  return createOutboxLedger(engine, options);
}

function toSource(row: Row): Source {
  const [id, stream, event, type] = row.map(String);
  return {
    id: id ?? '',
    source_stream_id: stream ?? '',
    source_event_id: event ?? '',
    integration_type: type ?? '',
  };
}

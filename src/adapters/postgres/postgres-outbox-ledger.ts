// The outbox ledger in PostgreSQL: one call settles a batch and claims the next, fair between
// tenants, without a global lock.

import type { ClientBase, Pool } from 'pg';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { OutboxRow } from '../../outbox/check-outbox.ts';
import { createOutboxLedger, type OutboxEngine } from '../../outbox/create-outbox-ledger.ts';
import { outboxLimits as limits } from '../../outbox/outbox-limits.ts';
import type {
  ClaimRequest,
  Enqueued,
  OutboxLedger,
  OutboxOutcome,
} from '../../outbox/outbox-ledger.ts';
import { createKeptClient } from './kept-client.ts';
import {
  askPostgres,
  checkOut,
  connectPostgres,
  unavailable,
  type PreparedSql,
  type Row,
} from './postgres-connection.ts';
import { createLaneFloors } from './postgres-outbox-floors.ts';
import { createPostgresOutboxListener } from './postgres-outbox-listener.ts';
import {
  claimArrays,
  columnsOf,
  encodeRows,
  outcomeArrays,
  renewedFields,
  renewedToken,
  rowKey,
  sourceKey,
  sourcesLeft,
  staleClaims,
  toClaimed,
  toMessage,
  type Source,
} from './postgres-outbox-rows.ts';
import * as queries from './postgres-outbox-queries.ts';
import * as renewing from './postgres-outbox-renew-sql.ts';
import * as sql from './postgres-outbox-sql.ts';
import { migratePostgresOutbox } from './postgres-outbox-schema.ts';
import { lockClass, quoteName } from './postgres-schema-names.ts';
import { checkClient, type TransactionQuery } from './transaction-query.ts';

export interface PostgresOutboxOptions {
  /** Default: `core_outbox`. */
  readonly schema?: string;
  /** `auto` (default) brings the schema up to date when the ledger is opened. */
  readonly migrate?: 'auto' | 'off';
  /** Named prepared statements; off behind a pooler that hands out connections per transaction. Default: on. */
  readonly prepare?: boolean;
  /** Of our own pool, when a URL is given. Default: 10. */
  readonly connectionsMax?: number;
  readonly clock?: Clock;
  readonly observer?: Observer;
}

/**
 * What an enqueue may be a part of: a `pg` client in a transaction, or a function that runs a query in
 * whatever transaction the caller has (`fromTypeorm`, `fromKysely`, `fromDrizzle`, `fromKnex`, `fromPrisma`).
 */
export type PostgresTransaction = Pick<ClientBase, 'query'> | TransactionQuery;

/**
 * Opens the outbox ledger in a PostgreSQL database, by URL or with a `pg` pool of yours.
 *
 * @example
 * import pg from 'pg';
 * import { postgresOutboxLedger } from 'millrace/adapters/postgres';
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/shop' });
 * await using outbox = await postgresOutboxLedger(pool);
 *
 * const client = await pool.connect();
 * await client.query('begin');
 * await client.query('update orders set paid = true where id = $1', ['o1']);
 * await outbox.enqueueIn(client, [
 *   {
 *     sourceStreamId: 'orders-o1',
 *     sourceEventId: 'o1-paid',
 *     integrationType: 'webhook:partner-x',
 *     eventType: 'order.paid.v1',
 *     payload: { orderId: 'o1' },
 *   },
 * ]);
 * await client.query('commit');
 */
export async function postgresOutboxLedger(
  target: string | Pool,
  options: PostgresOutboxOptions = {},
): Promise<OutboxLedger<PostgresTransaction>> {
  const {
    schema = 'core_outbox',
    migrate = 'auto',
    prepare = true,
    connectionsMax = 10,
    clock = systemClock,
    observer = silentObserver,
  } = options;
  const connection = await connectPostgres(target, { prepare, connectionsMax });
  try {
    if (migrate === 'auto') await migrateNow(connection.pool, schema);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw unavailable(error);
  }
  const lock = lockClass(schema);
  const channel = `millrace_outbox_${lock}`;
  const statement = (name: string, text: string): PreparedSql => ({
    name: `outbox ${name} ${schema}`,
    text: text.replaceAll('{schema}', quoteName(schema)),
  });
  const enqueueSql = statement('enqueue', sql.enqueueSql);
  const findSourcesSql = statement('find-sources', sql.findSourcesSql);
  const settleSql = statement('settle', sql.settleSql);
  const exchangeSql = statement('exchange', sql.exchangeSql);
  const renewSql = statement('renew', renewing.renewSql);
  const extendSql = statement('extend', renewing.extendSql);
  const promoteSql = statement('promote', sql.promoteSql);
  const parkSql = statement('park', queries.parkSql);
  const ask = (each: PreparedSql, values: readonly unknown[]): Promise<readonly Row[]> =>
    askPostgres(() => connection.query(each, values));
  const listener = createPostgresOutboxListener(connection, {
    lockClass: lock,
    channel,
    clock,
    onFailure: (err) => observer.log?.warn({ schema, err }, 'outbox lost its listening connection'),
  });
  const floors = createLaneFloors(clock);
  const kept = createKeptClient(connection.pool);
  /** Of a claim beside another one. */
  const keptBeside = createKeptClient(connection.pool);

  async function enqueue(
    rows: readonly OutboxRow[],
    transaction?: PostgresTransaction,
  ): Promise<readonly Enqueued[]> {
    const run = async (
      each: PreparedSql,
      values: readonly unknown[],
    ): Promise<readonly Source[]> => {
      if (transaction === undefined) return (await connection.query(each, values)).map(toSource);
      if (typeof transaction === 'function') {
        return (await transaction(each.text, values)).map(columnsOf);
      }
      checkClient(transaction);
      return (await transaction.query<Source>(each.text, [...values])).rows;
    };
    return askPostgres(async () => {
      const known = new Map<string, Enqueued>();
      for (const source of await run(enqueueSql, [encodeRows(rows), lock, channel])) {
        known.set(sourceKey(source), { id: source.id, isNew: true });
      }
      const left = sourcesLeft(rows, known);
      if (left.length > 0) {
        for (const source of await run(findSourcesSql, [JSON.stringify(left)])) {
          known.set(sourceKey(source), { id: source.id, isNew: false });
        }
      }
      if (transaction === undefined) listener.wakeAll();
      const told = new Set<string>();
      return rows.map((row) => {
        const key = rowKey(row);
        const { id, isNew } = known.get(key) ?? { id: '', isNew: false };
        const isFirst = !told.has(key);
        told.add(key);
        return { id, isNew: isNew && isFirst };
      });
    });
  }

  interface Claimed {
    readonly stale: readonly Row[];
    readonly claimed: readonly Row[];
    /** Lanes were left to another claim of ours. */
    readonly isPart: boolean;
  }

  async function claimOnce(
    outcomes: readonly OutboxOutcome[],
    { workerId, limit, leaseMs }: Required<ClaimRequest>,
    lanesAsked: 'whole' | 'shared' = 'shared',
  ): Promise<Claimed> {
    const asked = floors.next(lanesAsked);
    const { lanes, from, isPart } = asked;
    const perLane = Math.max(1, Math.floor(limit / (lanes.length || limits.lanes)));
    const settled = outcomeArrays(outcomes);
    const values = [...settled, lanes, from, limit, perLane, workerId, leaseMs];
    const on = kept.isBusy ? keptBeside : kept;
    let rows: readonly Row[];
    try {
      // Through the pool it would be sent only when everything that the last claim brought has begun.
      rows = await askPostgres(() =>
        on.use((client) => connection.query(exchangeSql, values, client)),
      );
    } catch (error) {
      floors.failed(asked);
      throw error;
    }
    const isClaimed = (row: Row): boolean => row[0] !== null;
    const claimed = rows.filter(isClaimed);
    const places = claimed.map((row) => ({ lane: Number(row[19]), seq: Number(row[17]) }));
    floors.claimed(asked, places, claimed.length >= limit);
    const told = rows.filter((row) => !isClaimed(row)).map((row) => row.slice(17));
    return { stale: takeStale(told), claimed, isPart };
  }

  /** The others are those that may be claimed again. */
  function takeStale(told: readonly Row[]): readonly Row[] {
    for (const [seq, , lane = null] of told) {
      if (lane !== null) floors.lower({ lane: Number(lane), seq: Number(seq) });
    }
    return told.filter(([, , lane = null]) => lane === null);
  }

  /** Puts those of paused destinations off until they are resumed. */
  async function unpaused(claimed: readonly Row[]): Promise<readonly Row[]> {
    const paused = claimed.filter((row) => row.at(-1) === true);
    if (paused.length === 0) return claimed;
    const destinations = new Set(paused.map((row) => row[3]));
    await ask(parkSql, [
      paused.map((row) => row[17]),
      paused.map((row) => row[18]),
      [...destinations],
    ]);
    return claimed.filter((row) => row.at(-1) !== true);
  }

  async function claim(
    outcomes: readonly OutboxOutcome[],
    request: Required<ClaimRequest>,
  ): Promise<Omit<Claimed, 'isPart'>> {
    const first = await claimOnce(outcomes, request);
    let claimed = await unpaused(first.claimed);
    // Whoever gets less than he asked for takes it for all there is.
    if (first.isPart && first.claimed.length < request.limit) {
      const limit = request.limit - first.claimed.length;
      const rest = await claimOnce([], { ...request, limit }, 'whole');
      claimed = [...claimed, ...(await unpaused(rest.claimed))];
    }
    // What was claimed is not held up for others: those who claim all the time look once a second.
    if (claimed.length === 0 || floors.isUpkeepDue()) {
      const [[promoted] = []] = await ask(promoteSql, [request.limit]);
      const limit = request.limit - claimed.length;
      if (Number(promoted) > 0) floors.forget();
      if (Number(promoted) > 0 && limit > 0) {
        const more = await claimOnce([], { ...request, limit });
        claimed = [...claimed, ...(await unpaused(more.claimed))];
      }
    }
    return { stale: first.stale, claimed };
  }

  const engine: OutboxEngine<PostgresTransaction> = {
    capabilities: { durable: true, crossProcess: true, callerTransaction: true },
    enqueue,
    async exchange(outcomes, request) {
      const { stale, claimed } =
        request === undefined
          ? { stale: takeStale(await ask(settleSql, outcomeArrays(outcomes))), claimed: [] }
          : await claim(outcomes, request);
      const isStale = staleClaims(stale);
      return {
        settled: outcomes.map((each) => (isStale(each.claim) ? 'stale' : 'settled')),
        claimed: claimed.map((row) => toClaimed(row, request?.workerId ?? '')),
      };
    },
    async renew(claims, { workerId, leaseMs, perTenant }) {
      const asked = claims.map(({ claim: each }) => each);
      const isRead = claims.map((each) => each.isRead);
      const values = [...claimArrays(asked), isRead, workerId, leaseMs, perTenant];
      const rows = await ask(renewSql, values);
      const byToken = new Map(rows.map((row) => [renewedToken(row), row]));
      return claims.map(({ claim: { token }, isRead: whole }) => {
        const row = byToken.get(token);
        if (row === undefined) return 'stale';
        if (row.at(-1) === true) return 'paused';
        return whole ? toClaimed(row, workerId) : renewedFields(row, workerId);
      });
    },
    async extend(claims, leaseMs) {
      const [[count] = []] = await ask(extendSql, [...claimArrays(claims), leaseMs]);
      return Number(count);
    },
    whenDue: (pollMs, signal) => listener.whenDue(pollMs, signal),
    async list(filter, { limit, after }) {
      const { ids = null, status, integrationType = null, tenantId = null, since } = filter;
      const listSql = statement(`list ${status ?? ''}`, queries.listSql(status));
      const sinceMs = since?.getTime() ?? null;
      const values = [
        ids,
        status ?? null,
        integrationType,
        tenantId,
        sinceMs,
        after ?? null,
        limit,
      ];
      return (await ask(listSql, values)).map(toMessage);
    },
    async bySource(sources, limit) {
      const wanted = sources.map((each) => ({
        source_stream_id: each.sourceStreamId,
        source_event_id: each.sourceEventId,
      }));
      const bySourceSql = statement('by-source', queries.bySourceSql);
      return (await ask(bySourceSql, [JSON.stringify(wanted), limit])).map(toMessage);
    },
    async counts() {
      const counts = { all: 0, PENDING: 0, CLAIMED: 0, FAILED: 0, DEAD: 0 };
      for (const [status, count] of await ask(statement('counts', queries.countsSql), [])) {
        counts[String(status) as keyof typeof counts] += Number(count);
      }
      const { all, ...others } = counts;
      const unsent = Object.values(others).reduce((sum, count) => sum + count, 0);
      // An estimate may lag behind what is counted.
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
      const [[count] = []] = await ask(statement('replay', queries.replaySql), values);
      floors.forget();
      listener.wakeAll();
      return Number(count);
    },
    async purge(sentBeforeMs, limit) {
      const [[count] = []] = await ask(statement('purge', queries.purgeSql), [sentBeforeMs, limit]);
      return Number(count);
    },
    async sentFirst(sentBeforeMs, limit) {
      const sentFirst = statement('sent-first', queries.sentFirstSql);
      return (await ask(sentFirst, [sentBeforeMs, limit])).map(toMessage);
    },
    forget: async (ids) => void (await ask(statement('forget', queries.forgetSql), [ids])),
    pause: async (integrationType, by) =>
      (await ask(statement('pause', queries.pauseSql), [integrationType, by])).length > 0,
    async resume(integrationType) {
      const values = [integrationType, lock, channel];
      const [[was] = []] = await ask(statement('resume', queries.resumeSql), values);
      floors.forget();
      listener.wakeAll();
      return was === true;
    },
    async paused() {
      return (await ask(statement('paused', queries.pausedSql), [])).map(([type, at, by]) => ({
        integrationType: String(type),
        pausedAt: new Date(Number(at)),
        pausedBy: String(by),
      }));
    },
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      kept.release();
      keptBeside.release();
      await connection[Symbol.asyncDispose]();
    },
  };
  return createOutboxLedger(engine);
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

async function migrateNow(pool: Pool, schema: string): Promise<void> {
  const client = await checkOut(pool);
  try {
    await migratePostgresOutbox(client, schema);
  } finally {
    client.release();
  }
}

// The outbox ledger in PostgreSQL: one statement claims a batch and settles the one before, fair between
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
import type { ClaimedMessage } from '../../outbox/outbox-message.ts';
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
  columnsOf,
  decodeToken,
  encodeRows,
  encodeToken,
  outcomeArrays,
  rowKey,
  sourceKey,
  sourcesLeft,
  toClaimed,
  toMessage,
  type Source,
} from './postgres-outbox-rows.ts';
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
  const promoteSql = statement('promote', sql.promoteSql);
  const parkSql = statement('park', sql.parkSql);
  const ask = (each: PreparedSql, values: readonly unknown[]): Promise<readonly Row[]> =>
    askPostgres(() => connection.query(each, values));
  const listener = createPostgresOutboxListener(connection, {
    lockClass: lock,
    channel,
    clock,
    onFailure: (err) => observer.log?.warn({ schema, err }, 'outbox lost its listening connection'),
  });
  const floors = createLaneFloors({
    clock,
    read: (lanes) => ask(statement('floors', sql.floorsSql), [lanes]),
  });

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

  async function claimOnce(
    outcomes: readonly OutboxOutcome[],
    { workerId, limit, leaseMs }: Required<ClaimRequest>,
  ): Promise<{ readonly settled: ReadonlySet<string>; readonly claimed: readonly Row[] }> {
    const { lanes, from } = await floors.next();
    const perLane = Math.max(1, Math.floor(limit / limits.lanes));
    const places = outcomes.map((each) => decodeToken(each.claim.token));
    const rows = await ask(exchangeSql, [
      ...outcomeArrays(outcomes, places),
      lanes,
      from,
      limit,
      perLane,
      workerId,
      leaseMs,
    ]);
    const claimed = rows.filter(([kind]) => Number(kind) === 1);
    floors.claimed(claimed.length >= limit, Number(claimed.at(-1)?.[3] ?? -1));
    const settled = rows.filter(([kind]) => Number(kind) === 0);
    return { settled: new Set(settled.map(([, seq, token]) => encodeToken(seq, token))), claimed };
  }

  /** Puts those of paused destinations off until they are resumed. */
  async function unpaused(claimed: readonly Row[]): Promise<readonly ClaimedMessage[]> {
    const paused = claimed.filter((row) => row.at(-1) === true);
    if (paused.length > 0) {
      const destinations = new Set(paused.map((row) => row[12]));
      await ask(parkSql, [paused.map(seqOf), paused.map((row) => row[2]), [...destinations]]);
    }
    return claimed.filter((row) => row.at(-1) !== true).map(toClaimed);
  }

  async function claim(
    outcomes: readonly OutboxOutcome[],
    request: Required<ClaimRequest>,
  ): Promise<{
    readonly settled: ReadonlySet<string>;
    readonly claimed: readonly ClaimedMessage[];
  }> {
    const first = await claimOnce(outcomes, request);
    let claimed = await unpaused(first.claimed);
    const isShort = first.claimed.length < request.limit;
    if (isShort || floors.isUpkeepDue()) {
      const [[promoted] = []] = await ask(promoteSql, [request.limit]);
      if (isShort && Number(promoted) > 0) {
        const limit = request.limit - claimed.length;
        const more = await claimOnce([], { ...request, limit });
        claimed = [...claimed, ...(await unpaused(more.claimed))];
      }
    }
    return { settled: first.settled, claimed };
  }

  const engine: OutboxEngine<PostgresTransaction> = {
    capabilities: { durable: true, crossProcess: true, callerTransaction: true },
    enqueue,
    async exchange(outcomes, request) {
      const places = outcomes.map((each) => decodeToken(each.claim.token));
      const done =
        request === undefined
          ? {
              settled: new Set(
                (await ask(settleSql, outcomeArrays(outcomes, places))).map(([seq, token]) =>
                  encodeToken(seq, token),
                ),
              ),
              claimed: [],
            }
          : await claim(outcomes, request);
      const settled = outcomes.map((each) =>
        done.settled.has(each.claim.token) ? 'settled' : 'stale',
      );
      const { workerId } = request ?? {};
      return { settled, claimed: done.claimed.map((each) => ({ ...each, lockedBy: workerId })) };
    },
    whenDue: (pollMs, signal) => listener.whenDue(pollMs, signal),
    async list(filter, { limit, after }) {
      const { ids = null, status, integrationType = null, tenantId = null, since } = filter;
      const listSql = statement(`list ${status ?? ''}`, sql.listSql(status));
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
      const bySourceSql = statement('by-source', sql.bySourceSql);
      return (await ask(bySourceSql, [JSON.stringify(wanted), limit])).map(toMessage);
    },
    async counts() {
      const counts = { PENDING: 0, CLAIMED: 0, SENT: 0, FAILED: 0, DEAD: 0 };
      for (const [status, count] of await ask(statement('counts', sql.countsSql), [])) {
        counts[String(status) as keyof typeof counts] += Number(count);
      }
      return counts;
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
      const [[count] = []] = await ask(statement('replay', sql.replaySql), values);
      listener.wakeAll();
      return Number(count);
    },
    async purge(sentBeforeMs, limit) {
      const [[count] = []] = await ask(statement('purge', sql.purgeSql), [sentBeforeMs, limit]);
      return Number(count);
    },
    pause: async (integrationType, by) =>
      (await ask(statement('pause', sql.pauseSql), [integrationType, by])).length > 0,
    async resume(integrationType) {
      const values = [integrationType, lock, channel];
      const [[was] = []] = await ask(statement('resume', sql.resumeSql), values);
      listener.wakeAll();
      return was === true;
    },
    async paused() {
      return (await ask(statement('paused', sql.pausedSql), [])).map(([type, at, by]) => ({
        integrationType: String(type),
        pausedAt: new Date(Number(at)),
        pausedBy: String(by),
      }));
    },
    async [Symbol.asyncDispose]() {
      await listener[Symbol.asyncDispose]();
      await connection[Symbol.asyncDispose]();
    },
  };
  return createOutboxLedger(engine);
}

function seqOf(row: Row): number {
  return Number(row[1]);
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

// Circuit breakers shared by processes, in PostgreSQL: one row per destination whose breaker is not closed. All
// times are those of the server's clock.

import type { Pool, QueryResult, QueryResultRow } from 'pg';
import type { BreakerStore } from '../../../delivery/breaker-store.ts';
import { createdOnUse } from '../connection/connection.ts';

const table = 'millrace_breakers';

export function postgresBreakerStore(pool: Pool): BreakerStore {
  const created = createdOnUse(
    pool,
    'breakers',
    `create table if not exists ${table} (
       destination text primary key,
       open_until timestamptz not null,
       openings integer not null,
       prober text,
       probe_until timestamptz
     )`,
  );
  const query = async <Row extends QueryResultRow>(
    sql: string,
    values: unknown[] = [],
  ): Promise<QueryResult<Row>> => (await created()).query<Row>(sql, values);
  const after = (parameter: string): string =>
    `clock_timestamp() + ${parameter}::float8 * interval '1 millisecond'`;

  return {
    async list() {
      const { rows } = await query<{ destination: string; ms: number; openings: number }>(
        `select destination, openings,
           greatest(0, extract(epoch from open_until - clock_timestamp()) * 1000)::float8 as ms
         from ${table}`,
      );
      return rows.map(({ destination, ms, openings }) => ({
        destination,
        openForMs: ms,
        openings,
      }));
    },
    async open(destination, { forMs, openings }) {
      await query(
        `insert into ${table} as known (destination, open_until, openings)
         values ($1, ${after('$2')}, $3)
         on conflict (destination) do update set
           open_until = greatest(known.open_until, excluded.open_until),
           openings = greatest(known.openings, excluded.openings),
           prober = null,
           probe_until = null`,
        [destination, forMs, openings],
      );
    },
    async probe(destination, { holder, forMs }) {
      const { rows } = await query<{ is_known: boolean; is_ours: boolean }>(
        `with taken as (
           update ${table} set prober = $2, probe_until = ${after('$3')}
           where destination = $1 and open_until <= clock_timestamp()
             and (prober is null or prober = $2 or probe_until <= clock_timestamp())
           returning 1)
         select exists (select from taken) as is_ours,
           exists (select from ${table} where destination = $1) as is_known`,
        [destination, holder, forMs],
      );
      return rows[0]?.is_ours === true || rows[0]?.is_known === false;
    },
    async close(destination, holder) {
      const { rowCount } = await query(
        `delete from ${table} where destination = $1 and prober = $2`,
        [destination, holder],
      );
      return rowCount === 1;
    },
  };
}

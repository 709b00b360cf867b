// Circuit breakers on SQLite, shared by the processes of one machine: one row per destination that is not closed.

import type { DatabaseSync } from 'node:sqlite';
import type { BreakerStore } from '../../../delivery/breaker-store.ts';
import { tableName } from '../../../delivery/table-name.ts';
import { systemClock, type Clock } from '../../../foundation/clock.ts';

export interface SqliteBreakerStoreOptions {
  /** The name of the table. Default: `millrace_breakers`. */
  readonly table?: string | undefined;
  /** Default: the clock of the machine, which all processes with the file share. */
  readonly clock?: Clock | undefined;
}

/** Creates a missing table; you close the database. */
export function sqliteBreakerStore(
  database: DatabaseSync,
  options: SqliteBreakerStoreOptions = {},
): BreakerStore {
  const { clock = systemClock } = options;
  const { quoted: table } = tableName(options.table ?? 'millrace_breakers');
  database.exec(
    `create table if not exists ${table} (
       destination text primary key,
       open_until_ms integer not null,
       openings integer not null,
       prober text,
       probe_until_ms integer
     )`,
  );
  const list = database.prepare(`select destination, open_until_ms, openings from ${table}`);
  const open = database.prepare(
    `insert into ${table} (destination, open_until_ms, openings) values (?, ?, ?)
     on conflict (destination) do update set
       open_until_ms = max(open_until_ms, excluded.open_until_ms),
       openings = max(openings, excluded.openings),
       prober = null,
       probe_until_ms = null`,
  );
  const probe = database.prepare(
    `update ${table} set prober = $holder, probe_until_ms = $until
     where destination = $destination and open_until_ms <= $now
       and (prober is null or prober = $holder or probe_until_ms <= $now)`,
  );
  const find = database.prepare(`select 1 from ${table} where destination = ?`);
  const close = database.prepare(`delete from ${table} where destination = ? and prober = ?`);

  return {
    async list() {
      return list.all().map((row) => ({
        destination: String(row['destination']),
        openForMs: Math.max(0, Number(row['open_until_ms']) - clock.now()),
        openings: Number(row['openings']),
      }));
    },
    async open(destination, { forMs, openings }) {
      open.run(destination, Math.ceil(clock.now() + forMs), openings);
    },
    async probe(destination, { holder, forMs }) {
      const now = clock.now();
      const until = Math.ceil(now + forMs);
      const { changes } = probe.run({ destination, holder, now, until });
      return changes === 1 || find.get(destination) === undefined;
    },
    close: async (destination, holder) => close.run(destination, holder).changes === 1,
  };
}

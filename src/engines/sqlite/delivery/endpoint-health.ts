// The health of webhook endpoints on SQLite, shared by all processes with the file.

import type { DatabaseSync } from 'node:sqlite';
import {
  healthy,
  type EndpointHealth,
  type EndpointHealthStore,
} from '../../../delivery/endpoint-health.ts';
import { tableName } from '../../../delivery/table-name.ts';

export interface SqliteEndpointHealthOptions {
  /** The name of the table. Default: `millrace_endpoint_health`. */
  readonly table?: string | undefined;
}

/** Creates a missing table; you close the database. Pass a separate connection: this store begins transactions. */
export function sqliteEndpointHealth(
  database: DatabaseSync,
  options: SqliteEndpointHealthOptions = {},
): EndpointHealthStore {
  const { quoted: table } = tableName(options.table ?? 'millrace_endpoint_health');
  database.exec(
    `create table if not exists ${table} (endpoint_id text primary key, health text not null)`,
  );
  const select = database.prepare(`select health from ${table} where endpoint_id = ?`);
  const upsert = database.prepare(
    `insert into ${table} (endpoint_id, health) values (?, ?)
     on conflict (endpoint_id) do update set health = excluded.health`,
  );

  function read(endpointId: string): EndpointHealth | undefined {
    const text = select.get(endpointId)?.['health'];
    return typeof text === 'string' ? (JSON.parse(text) as EndpointHealth) : undefined;
  }

  return {
    read: async (endpointId) => read(endpointId),
    async update(endpointId, change) {
      database.exec('begin immediate');
      try {
        const next = change(read(endpointId) ?? healthy);
        upsert.run(endpointId, JSON.stringify(next));
        database.exec('commit');
        return next;
      } catch (error) {
        if (database.isTransaction) database.exec('rollback');
        throw error;
      }
    },
  };
}

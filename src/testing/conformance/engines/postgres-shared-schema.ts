// Reuses schemas between the cases of a suite, because creating a schema is most of the server's work for a case.

import { randomUUID } from 'node:crypto';
import type { ClientBase, Pool } from 'pg';
import { quoteName } from '../../../engines/postgres/connection/schema.ts';

export interface SharedSchemas {
  /** The name of an empty, migrated schema that no other case uses. */
  take(): Promise<string>;
  /** For cases that did not alter the tables; their rows are deleted later. */
  release(schema: string): void;
}

/** `migrate` creates the tables of a schema. */
export function sharedSchemas(
  pool: Pool,
  migrate: (client: ClientBase, schema: string) => Promise<unknown>,
): SharedSchemas {
  const free: string[] = [];
  const resets = new Map<string, string>();

  async function create(): Promise<string> {
    const schema = `case_${randomUUID().replaceAll('-', '')}`;
    const client = await pool.connect();
    try {
      await migrate(client, schema);
    } finally {
      client.release();
    }
    resets.set(schema, await resetSql(pool, schema));
    return schema;
  }

  return {
    async take() {
      const schema = free.pop();
      if (schema === undefined) return create();
      await pool.query(resets.get(schema) ?? '');
      return schema;
    },
    release: (schema) => void free.push(schema),
  };
}

/** Deletes rows: for small tables that is cheaper than truncate. */
async function resetSql(pool: Pool, schema: string): Promise<string> {
  const { rows } = await pool.query<{ kind: string; name: string }>(
    `select relkind as kind, relname as name from pg_class
     where relnamespace = $1::regnamespace and relkind in ('r', 'S') and relname <> 'migrations'`,
    [schema],
  );
  const within = ({ name }: { readonly name: string }): string =>
    `${quoteName(schema)}.${quoteName(name)}`;
  const tables = rows.filter(({ kind }) => kind === 'r').map(within);
  const sequences = rows.filter(({ kind }) => kind === 'S').map(within);
  const filled = tables.map((table) => `exists (select from ${table})`);
  const { rows: answers } = await pool.query<{ isFilled: boolean }>(
    `select ${filled.join(' or ')} as "isFilled"`,
  );
  if (answers[0]?.isFilled !== false) throw new Error('a new schema has rows that a reset deletes');
  return [
    ...tables.map((table) => `delete from ${table}`),
    ...sequences.map((sequence) => `select setval('${sequence}', 1, false)`),
  ].join(';');
}

// The steps of a schema in PostgreSQL, whose table `migrations` knows those that were taken.

import type { migratePostgres } from '../adapters/postgres/store/schema.ts';
import { hasCode } from '../foundation/error.ts';
import { checkTaken, titled, type DatabaseSchema, type SchemaStep } from './database-schema.ts';

export async function postgresSchema(
  target: string,
  schema: string,
  {
    steps,
    take,
  }: {
    readonly steps: readonly SchemaStep[];
    /** Takes those that are left. */
    readonly take: typeof migratePostgres;
  },
): Promise<DatabaseSchema> {
  const { connectPostgres, unavailable } =
    await import('../adapters/postgres/connection/connection.ts');
  const { quoteName } = await import('../adapters/postgres/connection/schema.ts');
  const table = `${quoteName(schema)}.migrations`;

  type Connection = Awaited<ReturnType<typeof connectPostgres>>;
  const connected = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await connectPostgres(target, { prepare: false, connectionsMax: 1 });
    try {
      return await work(connection);
    } catch (error) {
      throw hasCode(error, 'CONFIG_INVALID') ? error : unavailable(error);
    } finally {
      await connection[Symbol.asyncDispose]();
    }
  };

  return {
    steps,
    pending: () =>
      connected(async (connection) => {
        const ask = async (text: string, values: readonly unknown[]): Promise<unknown> =>
          (await connection.query({ name: '', text }, values))[0]?.[0];
        if ((await ask('select to_regclass($1) is not null', [table])) !== true) return steps;
        const taken = Number(await ask(`select coalesce(max(number), 0) from ${table}`, []));
        return steps.slice(checkTaken(taken, steps, `schema '${schema}'`));
      }),
    migrate: () =>
      connected(async ({ pool }) => {
        const client = await pool.connect();
        try {
          return await take(client, schema);
        } finally {
          client.release();
        }
      }),
    script: (some) =>
      some.length === 0
        ? ''
        : [
            `create schema if not exists ${quoteName(schema)};`,
            `create table if not exists ${table} (number integer primary key, title text not null, applied_at timestamptz not null default now());`,
            ...some.map(
              (step) =>
                `\n${titled(step)}insert into ${table} (number, title) values (${step.number}, '${step.title.replaceAll("'", "''")}');`,
            ),
            '',
          ].join('\n'),
  };
}

// A database schema as numbered migration steps, and such a schema in PostgreSQL.

import type { migratePostgres } from '../../engines/postgres/store/schema.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';

export interface SchemaStep {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

export interface DatabaseSchema {
  /** All steps; no database is read. */
  readonly steps: readonly SchemaStep[];
  /** The steps that the database lacks; changes nothing. */
  pending(): Promise<readonly SchemaStep[]>;
  /** Runs the missing steps under the engine's lock, and returns them. */
  migrate(): Promise<readonly SchemaStep[]>;
  /** The steps as one script to run by hand; it also records them as run. */
  script(steps: readonly SchemaStep[]): string;
}

export function titled({ number, title, sql }: SchemaStep): string {
  return `-- ${number}: ${title}\n${sql.trim()}\n`;
}

export function checkTaken(taken: number, steps: readonly SchemaStep[], where: string): number {
  if (taken <= steps.length) return taken;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${where} was created by a newer version of Millrace (step ${taken} of ${steps.length})`,
    { details: { taken, known: steps.length } },
  );
}

/** The table `migrations` of the schema contains the applied steps. */
export async function postgresSchema(
  target: string,
  schema: string,
  {
    steps,
    take,
  }: {
    readonly steps: readonly SchemaStep[];
    /** Runs the missing steps. */
    readonly take: typeof migratePostgres;
  },
): Promise<DatabaseSchema> {
  const { connectPostgres, unavailable } =
    await import('../../engines/postgres/connection/connection.ts');
  const { quoteName } = await import('../../engines/postgres/connection/schema.ts');
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

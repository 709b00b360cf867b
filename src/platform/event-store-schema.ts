// The schema behind a store's URL: the steps there are, those that are left, and taking them.

import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { parseStoreUrl } from './store-url.ts';

export interface SchemaStep {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

export interface EventStoreSchema {
  /** All there are; nobody is asked. */
  readonly steps: readonly SchemaStep[];
  /** Those that the database has not taken yet; changes nothing. */
  pending(): Promise<readonly SchemaStep[]>;
  /** Takes what is left, under the engine's lock, and tells what it took. */
  migrate(): Promise<readonly SchemaStep[]>;
  /** The steps as one script to run by hand, after which they count as taken. */
  script(steps: readonly SchemaStep[]): string;
}

const busyTimeoutMs = 10_000;

/**
 * The schema of the store that a URL names.
 *
 * @example
 * import { eventStoreSchema } from 'millrace/platform';
 *
 * const schema = await eventStoreSchema('sqlite:.millrace/events.db');
 * for (const { number, title } of await schema.migrate()) console.log(`took step ${number}: ${title}`);
 */
export async function eventStoreSchema(url: string): Promise<EventStoreSchema> {
  const target = parseStoreUrl(url);
  if (target.engine === 'sqlite') return sqliteSchema(resolve(target.path));
  if (target.engine === 'postgres') return postgresSchema(target.connection, target.schema);
  return { steps: [], pending: async () => [], migrate: async () => [], script: () => '' };
}

async function sqliteSchema(path: string): Promise<EventStoreSchema> {
  const { configureSqlite, migrateSqlite, sqliteMigrations } =
    await import('../adapters/sqlite/sqlite-schema.ts');
  const { DatabaseSync } = await import('node:sqlite');
  const steps = sqliteMigrations.map((sql, index) => ({
    number: index + 1,
    title: `version ${index + 1} of the file`,
    sql,
  }));

  type Database = InstanceType<typeof DatabaseSync>;
  const withDatabase = <T>(readOnly: boolean, work: (database: Database) => T): T => {
    try {
      const database = new DatabaseSync(path, { readOnly });
      try {
        return work(database);
      } finally {
        database.close();
      }
    } catch (error) {
      if (hasCode(error, 'CONFIG_INVALID')) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new MillraceError('STORE_UNAVAILABLE', `the file could not be opened: ${reason}`, {
        cause: error,
        details: { path, reason },
      });
    }
  };
  const versionOf = (database: Database): number =>
    Number(database.prepare('pragma user_version').get()?.['user_version']);

  return {
    steps,
    async pending() {
      if (!existsSync(path)) return steps;
      return steps.slice(checkTaken(withDatabase(true, versionOf), steps, path));
    },
    async migrate() {
      mkdirSync(dirname(path), { recursive: true });
      return withDatabase(false, (database) => {
        configureSqlite(database, busyTimeoutMs);
        const taken = checkTaken(versionOf(database), steps, path);
        migrateSqlite(database);
        return steps.slice(taken);
      });
    },
    script: (some) =>
      some.map((step) => `${titled(step)}pragma user_version = ${step.number};\n`).join('\n'),
  };
}

async function postgresSchema(target: string, schema: string): Promise<EventStoreSchema> {
  const { migratePostgres, postgresMigrations } = await import('../adapters/postgres/index.ts');
  const { connectPostgres, unavailable } =
    await import('../adapters/postgres/postgres-connection.ts');
  const { quoteName } = await import('../adapters/postgres/postgres-schema.ts');
  const steps = postgresMigrations(schema);
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
          return await migratePostgres(client, schema);
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

function titled({ number, title, sql }: SchemaStep): string {
  return `-- ${number}: ${title}\n${sql.trim()}\n`;
}

function checkTaken(taken: number, steps: readonly SchemaStep[], where: string): number {
  if (taken <= steps.length) return taken;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${where} was made by a newer version of Millrace (step ${taken} of ${steps.length})`,
    { details: { taken, known: steps.length } },
  );
}

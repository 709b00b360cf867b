// The database schemas of the store and the outbox at a URL: all steps, the missing ones, and running them.

import { existsSync } from 'node:fs';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { checkTaken, postgresSchema, titled, type DatabaseSchema } from './database-schema.ts';
import { parseEngineUrl } from './engine-url.ts';

const busyTimeoutMs = 10_000;
const schemaDefault = 'millrace';

/**
 * The schema of the store at a URL.
 *
 * @example
 * import { eventStoreSchema } from 'millrace/platform';
 *
 * const schema = await eventStoreSchema('sqlite:.millrace/events.db');
 * for (const { number, title } of await schema.migrate()) console.log(`applied step ${number}: ${title}`);
 */
export async function eventStoreSchema(url: string): Promise<DatabaseSchema> {
  const target = parseEngineUrl(url, 'store');
  if (target.engine === 'sqlite') return sqliteSchema(target.connection.replace(/^sqlite:/, ''));
  if (target.engine === 'postgres') {
    const { migratePostgres, postgresMigrations } = await import('../../engines/postgres/index.ts');
    const { connection, schema = schemaDefault } = target;
    return postgresSchema(connection, schema, {
      steps: postgresMigrations(schema),
      take: migratePostgres,
    });
  }
  return { steps: [], pending: async () => [], migrate: async () => [], script: () => '' };
}

async function sqliteSchema(path: string): Promise<DatabaseSchema> {
  const { configureSqlite, migrateSqlite, sqliteMigrations } =
    await import('../../engines/sqlite/connection/schema.ts');
  const { preparePrivateFile } = await import('../../engines/sqlite/connection/private-file.ts');
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
      preparePrivateFile(path);
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

/**
 * The schema of the outbox at a URL: `core_outbox` in PostgreSQL; a SQLite file has one schema for everything.
 *
 * @example
 * import { outboxSchema } from 'millrace/platform';
 *
 * const schema = await outboxSchema('postgres://localhost/shop');
 * console.log(schema.script(schema.steps)); // for the tool that runs your migrations
 */
export async function outboxSchema(url: string, schema = 'core_outbox'): Promise<DatabaseSchema> {
  const target = parseEngineUrl(url, 'store');
  if (target.engine !== 'postgres') return eventStoreSchema(url);
  const { migratePostgresOutbox, postgresOutboxMigrations } =
    await import('../../engines/postgres/index.ts');
  return postgresSchema(target.connection, schema, {
    steps: postgresOutboxMigrations(schema),
    take: migratePostgresOutbox,
  });
}

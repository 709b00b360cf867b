// Checks whether a PostgreSQL server has what the adapter needs and keeps confirmed commits.

import {
  examineOver,
  latencyOf,
  skewOf,
  unreachableRemedy,
  versionFinding,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { connectPostgres, type PostgresConnection } from './connection/connection.ts';
import { quoteName } from './connection/schema.ts';

export interface PostgresExamination extends Examination {
  /** The PostgreSQL schemas of the event store and of the outbox. */
  readonly schemas: readonly string[];
}

const versionLeast = '13';

/** Safe on a production server: it writes only a logical message to the write-ahead log. */
export async function examinePostgres(
  url: string,
  options: PostgresExamination,
): Promise<readonly Finding[]> {
  const { timeoutMs, nowMs, schemas } = options;
  const connect = () => connectPostgres(url, { prepare: false, connectionsMax: 1 });
  const checks: Checks<PostgresConnection> = {
    reachable: reach,
    permissions: async (connection) =>
      (await Promise.all(schemas.map((schema) => permissions(connection, schema)))).flat(),
    settings,
    read: (connection) =>
      latencyOf('read', () => query(connection, 'select 1'), {
        slowMs: 20,
        remedy: 'Move the database closer: every command waits for several reads.',
      }),
    'durable write': (connection) =>
      // A logical message is written to the write-ahead log like a commit, but to no table.
      latencyOf('durable write', () => query(connection, emitMessage), {
        slowMs: 50,
        remedy: 'Check the disk of the write-ahead log: every commit waits for it.',
      }),
    'clock skew': (connection) =>
      skewOf(nowMs, async () => {
        const epoch = 'select (extract(epoch from clock_timestamp()) * 1000)::float8::text';
        return Number((await query(connection, epoch))[0]?.[0]);
      }),
  };
  return examineOver(connect, checks, { timeoutMs, remedyOf });
}

const emitMessage = "select pg_logical_emit_message(true, 'millrace', 'doctor')";

function query(connection: PostgresConnection, text: string, values: readonly unknown[] = []) {
  return connection.query({ name: '', text }, values);
}

async function reach(connection: PostgresConnection): Promise<readonly Finding[]> {
  const [[version, number, isStandby, identity] = []] = await query(
    connection,
    `select current_setting('server_version'), current_setting('server_version_num')::int,
       pg_is_in_recovery(), format('database %s as %s', current_database(), current_user)`,
  );
  const major = Math.floor(Number(number) / 10_000);
  const least = versionFinding('PostgreSQL', String(major), versionLeast);
  const found: Finding[] = [
    { check: 'reachable', level: 'ok', detail: String(identity) },
    least.level === 'ok' ? { ...least, detail: `PostgreSQL ${String(version)}` } : least,
  ];
  if (isStandby === true) {
    const detail = 'the server is a standby and rejects writes';
    const remedy = 'Name the primary in the URL (target_session_attrs, or another host).';
    found.push({ check: 'writable', level: 'broken', detail, remedy });
  }
  return found;
}

async function permissions(
  connection: PostgresConnection,
  schema: string,
): Promise<readonly Finding[]> {
  const check = `permissions of ${schema}`;
  const [[mayCreateSchema, exists, mayCreateTables, inaccessible] = []] = await query(
    connection,
    `select has_database_privilege(current_database(), 'CREATE'), n.oid is not null,
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
       (select string_agg(c.relname, ', ' order by c.relname) from pg_class c
        where c.relnamespace = n.oid and c.relkind in ('r', 'p') and not (
          has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'INSERT') and
          has_table_privilege(c.oid, 'UPDATE') and has_table_privilege(c.oid, 'DELETE')))
     from (select 1) one left join pg_namespace n on n.nspname = $1`,
    [schema],
  );
  const name = quoteName(schema);
  if (typeof inaccessible === 'string') {
    const remedy = `grant select, insert, update, delete on all tables in schema ${name} to the user of the URL`;
    return [{ check, level: 'broken', detail: `the user may not use ${inaccessible}`, remedy }];
  }
  if (exists === true && mayCreateTables === true) {
    return [{ check, level: 'ok', detail: 'the user may use and alter the tables' }];
  }
  if (exists !== true && mayCreateSchema === true) {
    return [{ check, level: 'ok', detail: 'the user may create the schema' }];
  }
  const remedy =
    'Run millrace migrate as a privileged user before each new version, and start with migrate: off.';
  if (exists === true) {
    const detail = 'the user may use the tables, but not alter them';
    return [{ check, level: 'warning', detail, remedy }];
  }
  const detail = 'no such schema, and the user may not create it';
  return [{ check, level: 'broken', detail, remedy }];
}

/** Settings that break durability when they are off, each with its risk. */
const unsafe: Readonly<Record<string, string>> = {
  fsync: 'a power loss can corrupt the whole database',
  full_page_writes: 'a power loss can leave torn pages that recovery cannot repair',
  synchronous_commit: 'a power loss can lose confirmed commits',
};

async function settings(connection: PostgresConnection): Promise<readonly Finding[]> {
  const rows = await query(
    connection,
    `select name, setting from pg_settings
     where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_read_only')`,
  );
  const found: Finding[] = [];
  for (const [name, value] of rows.map((row) => row.map(String))) {
    if (name === 'default_transaction_read_only' && value === 'on') {
      const remedy = 'alter role … set default_transaction_read_only = off';
      found.push({ check: 'settings', level: 'broken', detail: `${name} = on`, remedy });
    }
    const risk = unsafe[name ?? ''];
    if (risk === undefined || value !== 'off') continue;
    const remedy = `Set ${name} = on in postgresql.conf, unless data loss is acceptable.`;
    found.push({ check: 'settings', level: 'warning', detail: `${name} = off: ${risk}`, remedy });
  }
  if (found.length > 0) return found;
  const detail = 'confirmed commits survive a power loss';
  return [{ check: 'settings', level: 'ok', detail }];
}

function remedyOf(error: unknown): string | undefined {
  const code =
    error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (code === '28P01' || code === '28000') {
    return 'Check user and password in the URL, and pg_hba.conf on the server.';
  }
  if (code === '3D000') return 'Create the database (createdb), or name another one in the URL.';
  if (code === '42501') return 'Grant the missing privilege to the user of the URL.';
  return unreachableRemedy(error);
}

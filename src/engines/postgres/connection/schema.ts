// A PostgreSQL schema of this adapter: its quoted name, its advisory locks, and its numbered migrations.

import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import { MillraceError } from '../../../foundation/error.ts';

export interface PostgresMigration {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Advisory locks share one number space per database, so every schema gets two classes in it. This class,
 * always even, is for running appends; the next one is for waiting readers (1) and for migrations (2).
 */
export function lockClass(schema: string): number {
  return createHash('sha256').update(`millrace ${schema}`).digest().readInt32BE(0) & 0x7ffffffe;
}

/**
 * Notifies a channel, but only while a process waits for it and therefore holds the lock (class + 1, 1):
 * PostgreSQL serializes all commits that notify.
 */
export const notifyWaiting = `
create function {schema}.notify_waiting(p_class integer, p_channel text) returns void
language plpgsql volatile as $$
begin
  if pg_try_advisory_lock(p_class + 1, 1) then
    perform pg_advisory_unlock(p_class + 1, 1);
  else
    perform pg_notify(p_channel, '');
  end if;
end $$;
`;

/** Numbers the migrations from 1 and replaces `{schema}` by the quoted name of the schema. */
export function numberMigrations(
  migrations: readonly Omit<PostgresMigration, 'number'>[],
  schema: string,
): readonly PostgresMigration[] {
  return migrations.map(({ title, sql }, index) => ({
    number: index + 1,
    title,
    sql: sql.replaceAll('{schema}', quoteName(schema)),
  }));
}

/** Runs the pending migrations in one transaction, under a lock; returns the ones that it ran. */
export async function runMigrations(
  client: ClientBase,
  schema: string,
  migrations: readonly PostgresMigration[],
): Promise<readonly PostgresMigration[]> {
  const name = quoteName(schema);
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock($1, 2)', [lockClass(schema) + 1]);
    await client.query(`create schema if not exists ${name}`);
    await client.query(
      `create table if not exists ${name}.migrations (number integer primary key, title text not null, applied_at timestamptz not null default now())`,
    );
    const { rows } = await client.query<{ number: number }>(
      `select max(number) as number from ${name}.migrations`,
    );
    const applied = rows[0]?.number ?? 0;
    if (applied > migrations.length) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `schema '${schema}' belongs to a newer version of Millrace: it has migration ${applied}, this version knows ${migrations.length}. Upgrade this process.`,
      );
    }
    const pending = migrations.filter(({ number }) => number > applied);
    for (const { number, title, sql } of pending) {
      await client.query(sql);
      await client.query(`insert into ${name}.migrations (number, title) values ($1, $2)`, [
        number,
        title,
      ]);
    }
    await client.query('commit');
    return pending;
  } catch (error) {
    // On a broken connection the rollback fails too; the first error is the one to report.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

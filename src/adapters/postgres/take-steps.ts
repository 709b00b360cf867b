// Numbered steps of a schema, each taken once, whoever comes first.

import type { ClientBase } from 'pg';
import { MillraceError } from '../../foundation/error.ts';
import { lockClass, quoteName } from './postgres-schema-names.ts';

export interface PostgresMigration {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

/** `{schema}` becomes the schema's quoted name. */
export function numberedSteps(
  steps: readonly Omit<PostgresMigration, 'number'>[],
  schema: string,
): readonly PostgresMigration[] {
  return steps.map(({ title, sql }, index) => ({
    number: index + 1,
    title,
    sql: sql.replaceAll('{schema}', quoteName(schema)),
  }));
}

export async function takeSteps(
  client: ClientBase,
  schema: string,
  steps: readonly PostgresMigration[],
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
    const taken = rows[0]?.number ?? 0;
    if (taken > steps.length) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `schema '${schema}' was made by a newer version (step ${taken})`,
      );
    }
    const left = steps.filter((step) => step.number > taken);
    for (const step of left) {
      await client.query(step.sql);
      await client.query(`insert into ${name}.migrations (number, title) values ($1, $2)`, [
        step.number,
        step.title,
      ]);
    }
    await client.query('commit');
    return left;
  } catch (error) {
    // A connection that broke cannot roll back, and has no need to: the first error is the reason.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

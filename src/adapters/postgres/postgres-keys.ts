// The keys of people whose data is sealed, beside the events that they open.

import { newSubjectKey } from '../../store/erasure.ts';
import type { SubjectKey, SubjectKeys } from '../../store/store-engine.ts';
import { askPostgres, type PostgresConnection, type Queryable } from './postgres-connection.ts';
import { quoteName } from './postgres-schema.ts';

export function createPostgresKeys(connection: PostgresConnection, schema: string): SubjectKeys {
  const at = quoteName(schema);
  const insert = {
    name: `${schema} keys insert`,
    text: `insert into ${at}.subject_keys (subject, key)
           select * from unnest($1::text[], $2::bytea[]) order by 1 on conflict do nothing`,
  };
  const select = {
    name: `${schema} keys select`,
    text: `select subject, key, forgotten_at_ms from ${at}.subject_keys where subject = any($1)`,
  };
  const forget = {
    name: `${schema} keys forget`,
    text: `with had as (select 1 from ${at}.subject_keys where subject = $1 and key is not null)
           insert into ${at}.subject_keys as k (subject, key, forgotten_at_ms) values ($1, null, $2)
           on conflict (subject) do update set key = null, forgotten_at_ms = excluded.forgotten_at_ms
             where k.key is not null
           returning exists (select 1 from had)`,
  };

  return {
    get: (subjects, { create, transaction }) =>
      askPostgres(async () => {
        const beside = transaction as Queryable | undefined;
        if (create) {
          const keys = subjects.map(newSubjectKey);
          await connection.queryBeside(insert, [subjects, keys], beside);
        }
        const rows = await connection.queryBeside(select, [subjects], beside);
        return new Map(
          rows.map(([subject, key, forgottenAtMs]) => [String(subject), toKey(key, forgottenAtMs)]),
        );
      }),
    forget: (subject, nowMs) =>
      askPostgres(async () => {
        const [[had] = []] = await connection.query(forget, [subject, nowMs]);
        return had === true;
      }),
  };
}

function toKey(key: unknown, forgottenAtMs: unknown): SubjectKey {
  return key instanceof Uint8Array
    ? { kind: 'key', key }
    : { kind: 'forgotten', forgottenAtMs: Number(forgottenAtMs) };
}

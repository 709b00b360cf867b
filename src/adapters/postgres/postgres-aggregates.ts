// Snapshots and key claims in the events' own schema.

import type { AggregateStorage } from '../../aggregates/aggregate-storage.ts';
import { askPostgres, type PostgresConnection } from './postgres-connection.ts';
import { quoteName } from './postgres-schema.ts';

export function postgresAggregateStorage(
  connection: PostgresConnection,
  schema: string,
): AggregateStorage {
  const at = quoteName(schema);
  const load = {
    name: `${schema} snapshot load`,
    text: `select revision, event_id, code_version, taken_at, state from ${at}.snapshots where stream = $1`,
  };
  const save = {
    name: `${schema} snapshot save`,
    text: `insert into ${at}.snapshots as s (stream, revision, event_id, code_version, taken_at, state)
           values ($1, $2, $3, $4, $5, $6)
           on conflict (stream) do update set revision = excluded.revision,
             event_id = excluded.event_id, code_version = excluded.code_version,
             taken_at = excluded.taken_at, state = excluded.state
           where excluded.revision >= s.revision`,
  };
  // The update changes nothing; it makes the row that is there come back, also one that another
  // transaction has only just committed.
  const claim = {
    name: `${schema} key claim`,
    text: `insert into ${at}.command_keys as k (key, stream, command) values ($1, $2, $3)
           on conflict (key) do update set key = k.key returning stream, command`,
  };
  return {
    snapshots: {
      async load(stream) {
        const [row] = await askPostgres(() => connection.query(load, [stream]));
        if (row === undefined) return undefined;
        const [revision, eventId, codeVersion, takenAt, state] = row;
        return {
          revision: Number(revision),
          eventId: String(eventId),
          codeVersion: Number(codeVersion),
          takenAt: String(takenAt),
          state: JSON.parse(String(state)) as unknown,
        };
      },
      async save(stream, { revision, eventId, codeVersion, takenAt, state }) {
        const values = [stream, revision, eventId, codeVersion, takenAt, JSON.stringify(state)];
        await askPostgres(() => connection.query(save, values));
      },
    },
    keyClaims: {
      async claim(key, use) {
        const values = [key, use.stream, use.command];
        const [[stream, command] = []] = await askPostgres(() => connection.query(claim, values));
        return { stream: String(stream), command: String(command) };
      },
    },
  };
}

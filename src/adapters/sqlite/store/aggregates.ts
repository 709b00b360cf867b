// Snapshots and key claims in the events' own file: written by the same thread, read on the caller's.

import type { AggregateStorage } from '../../../aggregates/aggregate-storage.ts';
import type { SqliteReading } from '../connection/database.ts';
import type { SqliteWriter } from '../thread/writer.ts';

export function sqliteAggregateStorage(
  writer: SqliteWriter,
  reading: SqliteReading,
): AggregateStorage {
  return {
    snapshots: {
      async load(stream) {
        const [row] = await reading((reader) =>
          reader.select('select * from snapshots where stream = ?', [stream]),
        );
        if (row === undefined) return undefined;
        return {
          revision: Number(row['revision']),
          eventId: String(row['event_id']),
          codeVersion: Number(row['code_version']),
          takenAt: String(row['taken_at']),
          state: JSON.parse(String(row['state'])) as unknown,
        };
      },
      async save(stream, { revision, eventId, codeVersion, takenAt, state }) {
        await writer.run([
          {
            sql: `insert into snapshots (stream, revision, event_id, code_version, taken_at, state)
                  values (?, ?, ?, ?, ?, ?)
                  on conflict (stream) do update set revision = excluded.revision,
                    event_id = excluded.event_id, code_version = excluded.code_version,
                    taken_at = excluded.taken_at, state = excluded.state
                  where excluded.revision >= snapshots.revision`,
            values: [stream, revision, eventId, codeVersion, takenAt, JSON.stringify(state)],
          },
        ]);
      },
    },
    keyClaims: {
      async claim(key, use) {
        const results = await writer.run([
          {
            sql: 'insert or ignore into command_keys (key, stream, command) values (?, ?, ?)',
            values: [key, use.stream, use.command],
          },
          { sql: 'select stream, command from command_keys where key = ?', values: [key] },
        ]);
        const held = results.at(-1)?.[0];
        return { stream: String(held?.['stream']), command: String(held?.['command']) };
      },
    },
  };
}

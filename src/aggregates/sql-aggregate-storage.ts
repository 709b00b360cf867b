// Snapshots and key claims in the SQL database of the events.

import type { KeyClaims } from './idempotency.ts';
import type { SnapshotStore } from './snapshot-store.ts';

export interface SqlAggregateStorage {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
}

/** The used part of an `SqlDatabase`, which aggregates may not import. */
interface AggregateDatabase {
  readonly dialect: { readonly table: (name: 'command_keys' | 'snapshots') => string };
  readonly run: (
    statements: readonly { readonly sql: string; readonly values: readonly (string | number)[] }[],
  ) => Promise<readonly (readonly (readonly unknown[])[])[]>;
}

export function sqlAggregateStorage({ dialect, run }: AggregateDatabase): SqlAggregateStorage {
  const snapshots = dialect.table('snapshots');
  const sql = {
    load: `select revision, event_id, code_version, taken_at, state from ${snapshots} where stream = ?1`,
    save: `insert into ${snapshots} as s (stream, revision, event_id, code_version, taken_at, state)
      values (?1, ?2, ?3, ?4, ?5, ?6)
      on conflict (stream) do update set revision = excluded.revision,
        event_id = excluded.event_id, code_version = excluded.code_version,
        taken_at = excluded.taken_at, state = excluded.state
      where excluded.revision >= s.revision`,
    // The update changes nothing; it makes the statement return an existing row, even one committed concurrently.
    claim: `insert into ${dialect.table('command_keys')} as k (key, stream, command)
      values (?1, ?2, ?3) on conflict (key) do update set key = k.key returning stream, command`,
  };
  return {
    snapshots: {
      async load(stream) {
        const [[row] = []] = await run([{ sql: sql.load, values: [stream] }]);
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
        await run([{ sql: sql.save, values }]);
      },
    },
    keyClaims: {
      async claim(key, use) {
        const values = [key, use.stream, use.command];
        const [[[stream, command] = []] = []] = await run([{ sql: sql.claim, values }]);
        return { stream: String(stream), command: String(command) };
      },
    },
  };
}

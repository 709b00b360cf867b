// Heartbeats of workers: written by the writer thread, or by the heartbeat thread through a separate connection.

import { DatabaseSync } from 'node:sqlite';
import type { BeatConnection, WorkerBeat } from '../../../tasks/task-engine.ts';
import type { WriterSettings } from '../thread/protocol.ts';

/** Opens the connection of the heartbeat thread, which finds this function by name (`TaskEngine.beatThread`). */
export async function openTaskBeat({
  path,
  busyTimeoutMs,
}: WriterSettings): Promise<BeatConnection> {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  // A heartbeat need not survive a power loss: the restarted worker has another id.
  database.exec('pragma synchronous = normal');
  return {
    async beat(beat) {
      writeBeat((sql, ...values) => database.prepare(sql).run(...values), beat);
    },
    async [Symbol.asyncDispose]() {
      database.close();
    },
  };
}

export function writeBeat(
  run: (sql: string, ...values: readonly (string | number | null)[]) => unknown,
  { worker, aliveUntilMs, about }: WorkerBeat,
): undefined {
  run(
    `insert into task_workers (worker, alive_until_ms, about) values (?, ?, ?)
     on conflict do update set alive_until_ms = excluded.alive_until_ms,
       about = coalesce(excluded.about, about)`,
    worker,
    aliveUntilMs,
    about ?? null,
  );
}

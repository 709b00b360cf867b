// A heartbeat connection for a thread that only reports that a worker is alive.

import { DatabaseSync } from 'node:sqlite';
import type { BeatConnection } from '../../../tasks/task-engine.ts';
import type { WriterSettings } from '../thread/protocol.ts';
import { writeBeat } from './writer.ts';

/** The heartbeat thread calls it by name (`TaskEngine.beatThread`). */
export async function openTaskBeat({
  path,
  busyTimeoutMs,
}: WriterSettings): Promise<BeatConnection> {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  // After a power loss a heartbeat is worthless: the restarted worker has another id.
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

// Says from a thread of its own that a worker is alive: a connection that does nothing else.

import { DatabaseSync } from 'node:sqlite';
import type { BeatConnection } from '../../../tasks/task-engine.ts';
import { beatOnce } from './writer.ts';

export interface SqliteBeatSettings {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

/** Called by name, by the thread that beats (`TaskEngine.beatThread`). */
export async function openTaskBeat(settings: SqliteBeatSettings): Promise<BeatConnection> {
  const { path, busyTimeoutMs } = settings;
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  // Worth nothing after a power loss: whoever comes back then is another worker.
  database.exec('pragma synchronous = normal');
  return {
    async beat({ worker, aliveUntilMs, about = null }) {
      beatOnce((sql, ...values) => database.prepare(sql).run(...values), {
        worker,
        aliveUntilMs,
        about,
      });
    },
    async [Symbol.asyncDispose]() {
      database.close();
    },
  };
}

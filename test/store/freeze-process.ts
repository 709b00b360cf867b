// Processes that stand still for a while, as on a machine that swaps or that is suspended.

import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { pathOf } from '../../src/engines/sqlite/connection/path.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { until } from './rig.ts';

/**
 * Stops the process and continues it after so long. With the URL of an SQLite file, never within a transaction
 * of the process: SQLite lets no other process write before that transaction ends, so none could take over.
 */
export async function freezeProcess(pid: number, forMs: number, url = ''): Promise<void> {
  if (url.startsWith('sqlite:')) {
    using database = new DatabaseSync(pathOf(url), { timeout: 60_000 });
    database.exec('begin immediate');
    process.kill(pid, 'SIGSTOP');
    await until('the process is stopped', () => isStopped(pid));
    database.exec('rollback');
  } else process.kill(pid, 'SIGSTOP');
  await systemClock.sleep(forMs);
  process.kill(pid, 'SIGCONT');
}

async function isStopped(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // Other systems than Linux have no such file.
  return stat === undefined || stat.slice(stat.lastIndexOf(')')).startsWith(') T');
}

// Pauses a process, as a swapping or suspended machine would.

import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { pathOf } from '../../src/engines/sqlite/connection/path.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { until } from './rig.ts';

/**
 * Stops the process and resumes it later. With the URL of an SQLite file, the process is never stopped within
 * a transaction: its write lock would keep every other process from taking over.
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
  // Only Linux has this file.
  return stat === undefined || stat.slice(stat.lastIndexOf(')')).startsWith(') T');
}

// A queue on SQLite, for the processes of one machine: a row for each job, taken under a lease that is renewed
// while its handler runs.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { errorText } from '../../../foundation/error-text.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import { checkJob, checkQueueName } from '../../../work/check-job.ts';
import {
  workLimits,
  type JobHandler,
  type JobState,
  type WorkQueue,
} from '../../../work/work-queue.ts';
import { openWorkFile } from './file.ts';
import { workQueueStatements, type JobRow } from './statements.ts';

export interface SqliteWorkQueueOptions {
  readonly name: string;
  readonly clock?: Clock;
  readonly observer?: Observer;
  /** After which a job is taken from a process that died. Default: 30 s. */
  readonly leaseMs?: number;
  /** How soon jobs of other processes are found. Default: 100 ms. */
  readonly pollIntervalMs?: number;
}

/**
 * A queue in a file of its own, `sqlite:<file>`, or `memory:` within one process.
 *
 * @example
 * import { sqliteWorkQueue } from 'millrace/adapters/sqlite';
 *
 * await using queue = sqliteWorkQueue('sqlite:.millrace/work.db', { name: 'MessageRequestQueue' });
 * console.log(await queue.state('core.r-1.1'));
 */
export function sqliteWorkQueue(url: string, options: SqliteWorkQueueOptions): WorkQueue {
  const { name: queue, clock = systemClock, observer = silentObserver } = options;
  const { leaseMs = 30_000, pollIntervalMs = 100 } = options;
  checkQueueName(queue);
  const database = openWorkFile(url);
  const sql = workQueueStatements(database);
  const closing = new AbortController();
  const working = new Set<Promise<void>>();
  const sleepers = new Set<() => void>();

  const wake = (): void => {
    for (const each of sleepers) each();
  };

  /** Until a job may be due, one is added here, or it is over. */
  async function rest(signal: AbortSignal): Promise<void> {
    const due = (sql.nextDue.get({ queue }) as { due: number | null }).due;
    const ms = Math.max(1, Math.min(pollIntervalMs, (due ?? Infinity) - clock.now()));
    const woken = new AbortController();
    const stop = (): void => woken.abort();
    sleepers.add(stop);
    // Rejects only because it was woken, or because it is over: both are looked at next.
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    sleepers.delete(stop);
  }

  function take(): JobRow | undefined {
    const now = clock.now();
    for (;;) {
      const row = sql.take.get({ queue, now, until: now + leaseMs, token: randomUUID() }) as
        | JobRow
        | undefined;
      if (row === undefined || row.starts <= workLimits.startsMax) return row;
      observer.log?.error({ queue, jobId: row.id }, 'a job ended its process too often');
      finish(row, 'failed', 'stalled too often');
    }
  }

  function finish(row: JobRow, state: 'completed' | 'failed', error: string | null): void {
    const { seq, token } = row;
    if (sql.finish.run({ seq, token, state, error, now: clock.now() }).changes === 0) return;
    sql.trim.run({ queue, state, kept: state === 'failed' ? row.keep_failed : row.keep_completed });
  }

  async function run(row: JobRow, handle: JobHandler, signal: AbortSignal): Promise<void> {
    const { id, name, data, seq, token } = row;
    const done = new AbortController();
    const renewing = (async () => {
      while (!done.signal.aborted) {
        await clock.sleep(leaseMs / 3, done.signal).catch(() => undefined);
        if (!done.signal.aborted) sql.renew.run({ seq, token, until: clock.now() + leaseMs });
      }
    })();
    try {
      const outcome = await handle({ id, name, data: JSON.parse(data) as unknown }, { signal });
      if (outcome === undefined) finish(row, 'completed', null);
      else sql.delay.run({ seq, token, at: Math.ceil(clock.now() + outcome.delayMs) });
    } catch (error) {
      observer.log?.warn({ queue, jobId: id, err: error }, 'job failed');
      finish(row, 'failed', errorText(error, 500));
    } finally {
      done.abort();
      await renewing;
    }
  }

  async function work(handle: JobHandler, concurrency: number, signal: AbortSignal): Promise<void> {
    const running = new Set<Promise<void>>();
    try {
      while (!signal.aborted) {
        const row = running.size < concurrency ? take() : undefined;
        if (row === undefined) {
          await (running.size < concurrency ? rest(signal) : Promise.race(running));
          continue;
        }
        const one = run(row, handle, signal).finally(() => {
          running.delete(one);
          wake();
        });
        running.add(one);
      }
    } finally {
      await Promise.allSettled(running);
    }
  }

  return {
    name: queue,
    async add(job) {
      const data = checkJob(job);
      const now = clock.now();
      sql.add.run({
        queue,
        id: job.id,
        name: job.name,
        data,
        priority: job.priority ?? 0,
        at: now + (job.delayMs ?? 0),
        completed: job.removeOnComplete ?? workLimits.removeOnComplete,
        failed: job.removeOnFail ?? workLimits.removeOnFail,
      });
      wake();
    },
    async state(id) {
      const row = sql.state.get({ queue, id }) as { state: string; at: number } | undefined;
      if (row === undefined) return undefined;
      if (row.state === 'waiting') return row.at > clock.now() ? 'delayed' : 'waiting';
      return row.state as JobState;
    },
    async work(handle, { concurrency, signal }) {
      const both = AbortSignal.any([signal, closing.signal]);
      const done = work(handle, concurrency, both).finally(() => working.delete(done));
      working.add(done);
      await done;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled(working);
      if (database.isOpen) database.close();
    },
  };
}

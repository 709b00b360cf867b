// A queue on SQLite, for the processes of one machine: one row per job, claimed under a lease that is renewed while its
// handler runs.

import { randomUUID } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { errorText } from '../../../foundation/error-text.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import { checkJob, checkQueueName } from '../../../work/check-job.ts';
import { createRunningWork } from '../../../work/running-work.ts';
import {
  workLimits,
  type JobHandler,
  type JobState,
  type WorkQueue,
} from '../../../work/work-queue.ts';
import { openWorkFile } from './file.ts';

export interface SqliteWorkQueueOptions {
  readonly name: string;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** When a job of a process that died is claimed again. Default: 30 s. */
  readonly leaseMs?: number | undefined;
  /** How often to poll for jobs of other processes. Default: 100 ms. */
  readonly pollIntervalMs?: number | undefined;
}

/** A queue in a separate file, `sqlite:<file>`, or `memory:` within one process. */
export function sqliteWorkQueue(url: string, options: SqliteWorkQueueOptions): WorkQueue {
  const { name: queue, clock = systemClock, observer = silentObserver } = options;
  const { leaseMs = 30_000, pollIntervalMs = 100 } = options;
  checkQueueName(queue);
  const database = openWorkFile(url);
  const sql = queueStatements(database);
  const workers = createRunningWork();
  const sleepers = new Set<() => void>();

  const wake = (): void => {
    for (const stop of sleepers) stop();
  };

  /** Waits until a job may be due, this process adds one, or the worker stops. */
  async function waitForJob(signal: AbortSignal): Promise<void> {
    const due = (sql.nextDue.get({ queue }) as { due: number | null }).due;
    const ms = Math.max(1, Math.min(pollIntervalMs, (due ?? Infinity) - clock.now()));
    const woken = new AbortController();
    const stop = (): void => woken.abort();
    sleepers.add(stop);
    // The sleep rejects only on a wake-up or when the worker stops; the loop checks both.
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    sleepers.delete(stop);
  }

  function claim(): JobRow | undefined {
    const now = clock.now();
    for (;;) {
      const row = sql.claim.get({ queue, now, until: now + leaseMs, token: randomUUID() }) as
        | JobRow
        | undefined;
      if (row === undefined || row.starts <= workLimits.startsMax) return row;
      observer.log?.error({ queue, jobId: row.id }, 'job failed: its process died too often');
      finish(row, 'failed', 'stalled too often');
    }
  }

  function finish(row: JobRow, state: 'completed' | 'failed', error: string | null): void {
    const { seq, token } = row;
    if (sql.finish.run({ seq, token, state, error, now: clock.now() }).changes === 0) return;
    sql.trim.run({
      queue,
      state,
      retained: state === 'failed' ? row.keep_failed : row.keep_completed,
    });
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
        const row = running.size < concurrency ? claim() : undefined;
        if (row === undefined) {
          await (running.size < concurrency ? waitForJob(signal) : Promise.race(running));
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
    work: (handle, { concurrency, signal }) =>
      workers.run(signal, (stop) => work(handle, concurrency, stop)),
    async [Symbol.asyncDispose]() {
      await workers.stop();
      if (database.isOpen) database.close();
    },
  };
}

interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly name: string;
  readonly data: string;
  readonly token: string;
  readonly starts: number;
  readonly keep_completed: number;
  readonly keep_failed: number;
}

type QueueStatements = Readonly<
  Record<
    'add' | 'delay' | 'finish' | 'nextDue' | 'renew' | 'state' | 'claim' | 'trim',
    StatementSync
  >
>;

/** A `waiting` job with a future time is delayed; an `active` job past its time belonged to a process that died. */
function queueStatements(database: DatabaseSync): QueueStatements {
  database.exec(
    `create table if not exists work_jobs (
       seq integer primary key autoincrement,
       queue text not null,
       id text not null,
       name text not null,
       data text not null,
       priority integer not null,
       state text not null default 'waiting',
       at_ms integer not null,
       token text,
       starts integer not null default 0,
       keep_completed integer not null,
       keep_failed integer not null,
       error text,
       unique (queue, id)
     );
     create index if not exists work_jobs_due on work_jobs (queue, state, at_ms);`,
  );
  return {
    add: database.prepare(
      `insert into work_jobs (queue, id, name, data, priority, at_ms, keep_completed, keep_failed)
       values ($queue, $id, $name, $data, $priority, $at, $completed, $failed)
       on conflict do nothing`,
    ),
    // at_ms: when the job may be claimed; for an active job, when its lease expires.
    claim: database.prepare(
      `update work_jobs set state = 'active', token = $token, at_ms = $until, starts = starts + 1
       where seq = (
         select seq from work_jobs
         where queue = $queue and state in ('waiting', 'active') and at_ms <= $now
         order by priority, at_ms, seq limit 1
       )
       returning seq, id, name, data, token, starts, keep_completed, keep_failed`,
    ),
    nextDue: database.prepare(
      `select min(at_ms) as due from work_jobs
       where queue = $queue and state in ('waiting', 'active')`,
    ),
    renew: database.prepare(
      `update work_jobs set at_ms = $until where seq = $seq and token = $token and state = 'active'`,
    ),
    // The handler requested the delay, so its process is alive: reset the count of starts.
    delay: database.prepare(
      `update work_jobs set state = 'waiting', token = null, at_ms = $at, starts = 0
       where seq = $seq and token = $token and state = 'active'`,
    ),
    finish: database.prepare(
      `update work_jobs set state = $state, at_ms = $now, error = $error
       where seq = $seq and token = $token and state = 'active'`,
    ),
    trim: database.prepare(
      `delete from work_jobs where queue = $queue and state = $state and seq not in (
         select seq from work_jobs where queue = $queue and state = $state
         order by at_ms desc, seq desc limit $retained
       )`,
    ),
    state: database.prepare(
      `select state, at_ms as at from work_jobs where queue = $queue and id = $id`,
    ),
  };
}

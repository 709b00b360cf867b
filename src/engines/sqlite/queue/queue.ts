// Queues on SQLite, for the processes of one machine: one row per job, claimed under a lease that is renewed while its
// handler runs.

import { randomUUID } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { nextTurn } from '../../../foundation/async/next-turn.ts';
import { createWaiters, waitWithPoll } from '../../../foundation/async/waiters.ts';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { errorText } from '../../../foundation/error-text.ts';
import { silentObserver, type Observer } from '../../../foundation/observer.ts';
import { claimLoop } from '../../../loops/claim-loop.ts';
import { checkJob } from '../../../work/check-job.ts';
import { matchesGlob } from '../../../foundation/matches-glob.ts';
import { checkQueueName, isPattern } from '../../../work/queue-name.ts';
import { createRunningWork } from '../../../work/running-work.ts';
import {
  workLimits,
  type JobHandler,
  type JobState,
  type NewJob,
  type WorkOptions,
  type WorkQueue,
} from '../../../work/work-queue.ts';
import { openWorkFile } from './file.ts';

export interface SqliteWorkQueueOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

/** How often workers poll for jobs of other processes. */
const pollIntervalMs = 100;

/** Queues in a separate file, `sqlite:<file>`, or `memory:` within one process. */
export function sqliteWorkQueue(url: string, options: SqliteWorkQueueOptions = {}): WorkQueue {
  const { clock = systemClock, observer = silentObserver } = options;
  const database = openWorkFile(url);
  const sql = queueStatements(database);
  const workers = createRunningWork();
  const changed = createWaiters();
  const listeners = new Map<string, Set<() => void>>();

  const depthOf = (queue: string): number =>
    Number(sql.count.get({ queue, now: clock.now() })?.['count']);

  function addAll(queue: string, jobs: readonly CheckedJob[], waitingMax: number): number {
    const now = clock.now();
    sql.register.run({ queue });
    const taken = jobs.slice(0, Math.max(0, waitingMax - depthOf(queue)));
    for (const job of taken) {
      sql.add.run({
        queue,
        id: job.id,
        name: job.name,
        data: job.json,
        priority: job.priority ?? 0,
        at: now + (job.delayMs ?? 0),
        completed: job.removeOnComplete ?? workLimits.removeOnComplete,
        failed: job.removeOnFail ?? workLimits.removeOnFail,
      });
    }
    return taken.length;
  }

  /** All or nothing, in one commit. */
  function inTransaction<T>(write: () => T): T {
    database.exec('begin immediate');
    try {
      const result = write();
      database.exec('commit');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('rollback');
      throw error;
    }
  }

  function namesOf(patterns: readonly string[]): readonly string[] {
    const exact = patterns.filter((each) => !isPattern(each));
    if (exact.length === patterns.length) return exact;
    const found = sql.queues
      .all()
      .map(({ name }) => String(name))
      .filter((name) => patterns.some((pattern) => matchesGlob(pattern, name)));
    return [...new Set([...exact, ...found])];
  }

  function claim(queue: string, leaseMs: number): JobRow | undefined {
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

  function delay({ seq, token }: JobRow, delayMs: number): void {
    sql.delay.run({ seq, token, at: Math.ceil(clock.now() + delayMs) });
  }

  function finish(row: JobRow, state: 'completed' | 'failed', error: string | null): void {
    const { queue, seq, token } = row;
    if (sql.finish.run({ seq, token, state, error, now: clock.now() }).changes === 0) return;
    const retained = state === 'failed' ? row.keep_failed : row.keep_completed;
    sql.trim.run({ queue, state, retained });
  }

  function work(
    handle: JobHandler,
    { queues, concurrency, leaseMs = workLimits.leaseMsDefault }: WorkOptions,
    signal: AbortSignal,
  ): Promise<void> {
    const active = new Map<string, number>();
    const about = { queues: queues.join(' ') };
    const roomIn = (queue: string): number => concurrency - (active.get(queue) ?? 0);
    const count = (queue: string, change: 1 | -1): void =>
      void active.set(queue, (active.get(queue) ?? 0) + change);

    function claimDue(): readonly JobRow[] {
      const rows: JobRow[] = [];
      for (const queue of namesOf(queues)) {
        for (let room = roomIn(queue); room > 0; room -= 1) {
          const row = claim(queue, leaseMs);
          if (row === undefined) break;
          rows.push(row);
        }
      }
      return rows;
    }

    /** Returns the write that stores the outcome. */
    async function run(row: JobRow): Promise<() => void> {
      const { queue, id, name, data } = row;
      count(queue, 1);
      try {
        const job = { queue, id, name, data: JSON.parse(data) as unknown };
        const outcome = await handle(job, { signal });
        if (outcome === undefined) return () => finish(row, 'completed', null);
        return () => delay(row, outcome.delayMs);
      } catch (err) {
        observer.log?.warn({ queue, jobId: id, err }, 'job failed');
        return () => finish(row, 'failed', errorText(err, 500));
      } finally {
        count(queue, -1);
      }
    }

    const loop = claimLoop<JobRow, () => void>(
      {
        clock,
        leaseMs,
        // `roomIn` bounds the jobs of each queue, and a claimed job starts at once.
        concurrency: Number.MAX_SAFE_INTEGER,
        room: () => Number.MAX_SAFE_INTEGER,
        bytesMax: Number.MAX_SAFE_INTEGER,
        bytesOf: () => 0,
        async claim() {
          // Yield: jobs that end at once must not block the event loop.
          await nextTurn();
          return { leasedAtMs: clock.now(), items: inTransaction(claimDue) };
        },
        run,
        release: (row) => () => delay(row, 0),
        async settle(ended) {
          inTransaction(() => {
            for (const { outcome: store } of ended) store();
          });
          changed.wakeAll();
        },
        async renew(rows) {
          const until = clock.now() + leaseMs;
          return inTransaction(() =>
            rows.map(({ seq, token }) => sql.renew.run({ seq, token, until }).changes > 0),
          );
        },
        async wake(stopping) {
          const free = namesOf(queues).filter((queue) => roomIn(queue) > 0);
          const pollMs = Math.min(
            pollIntervalMs,
            ...free.map((queue) => dueMs(queue) - clock.now()),
          );
          if (pollMs > 0) await waitWithPoll(changed, { clock, pollMs, signal: stopping });
        },
        onLost: (err) => observer.log?.warn({ ...about, err }, 'queue worker failed'),
        onRestored: () => observer.log?.info(about, 'queue worker resumed'),
      },
      signal,
    );
    return loop.done;
  }

  function dueMs(queue: string): number {
    return (sql.nextDue.get({ queue }) as { due: number | null }).due ?? Infinity;
  }

  return {
    async add(queue, jobs, { waitingMax = Infinity } = {}) {
      checkQueueName(queue);
      const checked = jobs.map((job) => ({ ...job, json: checkJob(job) }));
      const taken = inTransaction(() => addAll(queue, checked, waitingMax));
      changed.wakeAll();
      return taken;
    },
    async state(queue, id) {
      const row = sql.state.get({ queue, id }) as { state: string; at: number } | undefined;
      if (row === undefined) return undefined;
      if (row.state === 'waiting') return row.at > clock.now() ? 'delayed' : 'waiting';
      return row.state as JobState;
    },
    async work(handle, workOptions) {
      for (const queue of workOptions.queues) checkQueueName(queue);
      await workers.run(workOptions.signal, (stop) => work(handle, workOptions, stop));
    },
    async depth(queue) {
      checkQueueName(queue);
      return depthOf(queue);
    },
    async *waiting(queues) {
      checkQueueName(queues);
      for (const queue of namesOf([queues])) {
        const rows = sql.waiting.all({ queue, now: clock.now() });
        yield { queue, ids: rows.map(({ id }) => String(id)) };
      }
    },
    nudge(channel) {
      for (const listener of listeners.get(channel) ?? []) listener();
    },
    onNudge(channel, listener) {
      const all = listeners.get(channel) ?? new Set();
      listeners.set(channel, all.add(listener));
      return () => void all.delete(listener);
    },
    async [Symbol.asyncDispose]() {
      await workers.stop();
      if (database.isOpen) database.close();
    },
  };
}

interface CheckedJob extends NewJob {
  readonly json: string;
}

interface JobRow {
  readonly seq: number;
  readonly queue: string;
  readonly id: string;
  readonly name: string;
  readonly data: string;
  readonly token: string;
  readonly starts: number;
  readonly keep_completed: number;
  readonly keep_failed: number;
}

/** A `waiting` job with a future time is delayed; an `active` job past its time belonged to a process that died. */
function queueStatements(database: DatabaseSync) {
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
     create table if not exists work_queues (name text primary key) without rowid;
     create index if not exists work_jobs_due on work_jobs (queue, state, at_ms);`,
  );
  const isWaiting = `queue = $queue and state = 'waiting' and at_ms <= $now`;
  return {
    add: database.prepare(
      `insert into work_jobs (queue, id, name, data, priority, at_ms, keep_completed, keep_failed)
       values ($queue, $id, $name, $data, $priority, $at, $completed, $failed)
       on conflict do nothing`,
    ),
    count: database.prepare(`select count(*) as count from work_jobs where ${isWaiting}`),
    waiting: database.prepare(`select id from work_jobs where ${isWaiting}`),
    register: database.prepare('insert into work_queues values ($queue) on conflict do nothing'),
    queues: database.prepare('select name from work_queues'),
    // at_ms: when the job may be claimed; for an active job, when its lease expires.
    claim: database.prepare(
      `update work_jobs set state = 'active', token = $token, at_ms = $until, starts = starts + 1
       where seq = (
         select seq from work_jobs
         where queue = $queue and state in ('waiting', 'active') and at_ms <= $now
         order by priority, at_ms, seq limit 1
       )
       returning seq, queue, id, name, data, token, starts, keep_completed, keep_failed`,
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
  } satisfies Readonly<Record<string, StatementSync>>;
}

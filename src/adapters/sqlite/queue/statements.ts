// The queue's table and what is asked of it. `waiting` with a time ahead is delayed; `active` behind its lease
// belongs to a process that died.

import type { DatabaseSync, StatementSync } from 'node:sqlite';

export interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly name: string;
  readonly data: string;
  readonly token: string;
  readonly starts: number;
  readonly keep_completed: number;
  readonly keep_failed: number;
}

export type WorkQueueStatements = Readonly<
  Record<
    'add' | 'delay' | 'finish' | 'nextDue' | 'renew' | 'state' | 'take' | 'trim',
    StatementSync
  >
>;

export function workQueueStatements(database: DatabaseSync): WorkQueueStatements {
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
    // at_ms: from when on it may be taken; of an active one, from when on it may be taken over.
    take: database.prepare(
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
    // Whoever asked for a delay has not died: its starts count anew.
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
         order by at_ms desc, seq desc limit $kept
       )`,
    ),
    state: database.prepare(
      `select state, at_ms as at from work_jobs where queue = $queue and id = $id`,
    ),
  };
}

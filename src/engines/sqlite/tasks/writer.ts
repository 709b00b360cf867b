// Tasks inside the writer thread: a job and its bus messages change in the commit that the reply reports.

import type { DatabaseSync } from 'node:sqlite';
import type { EngineEntry } from '../../../bus/bus-engine.ts';
import { redoSubject } from '../../../bus/dead-letter.ts';
import type {
  ChangeOutcome,
  ClaimRequest,
  EnqueueEntry,
  EnqueueOutcome,
  TaskChange,
  TypeMode,
  WorkerBeat,
} from '../../../tasks/task-engine.ts';
import { isTerminal, type TaskHead, type TaskRef } from '../../../tasks/task-job.ts';
import type { BusOperations } from '../bus/writer.ts';
import { createSqlQuery, type Handlers, type Operation, type SqlRow } from '../thread/protocol.ts';
import { writeBeat } from './beat.ts';
import { createClaims, type Claimed } from './claims.ts';
import { columnFields, taskLane, toHead } from './tables.ts';

/** A signal as a bus message, and the column that stores its sequence. */
export interface TaskMessage {
  readonly entry: EngineEntry;
  readonly taskId: string | undefined;
  readonly sequenceTarget: 'queue_seq' | 'terminal_seq' | { readonly step: string } | undefined;
}

type WithMessages<T> = Omit<T, 'signals'> & { readonly messages: readonly TaskMessage[] };

/** The consumer group of a type's workers, and the stream that it reads. */
interface WorkerQueue {
  readonly type: string;
  readonly group: string;
  readonly subject: string;
}

export interface TaskOperations {
  readonly 'tasks.enqueue': Operation<
    { readonly entries: readonly WithMessages<EnqueueEntry>[]; readonly nowMs: number },
    readonly EnqueueOutcome[]
  >;
  readonly 'tasks.changeAndClaim': Operation<
    {
      readonly changes: readonly WithMessages<TaskChange>[];
      readonly claim: ClaimRequest | undefined;
      readonly queues: readonly WorkerQueue[];
      readonly nowMs: number;
    },
    Claimed & { readonly outcomes: readonly ChangeOutcome[] }
  >;
  readonly 'tasks.beat': Operation<WorkerBeat, undefined>;
  readonly 'tasks.forgetWorker': Operation<{ readonly worker: string }, undefined>;
  /** Returns the number of removed jobs. */
  readonly 'tasks.remove': Operation<{ readonly refs: readonly TaskRef[] }, number>;
  /** Returns whether expired dedupe keys remain: one call deletes at most `tidyStepMax`. */
  readonly 'tasks.tidy': Operation<{ readonly nowMs: number }, boolean>;
  readonly 'tasks.setMode': Operation<
    { readonly type: string; readonly mode: TypeMode },
    undefined
  >;
  /** Stores the messages that are missing in the bus; returns their number. */
  readonly 'tasks.repair': Operation<
    { readonly messages: readonly TaskMessage[]; readonly nowMs: number },
    number
  >;
}

/** Converts a field name such as `dueAtMs` to its column `due_at_ms`. */
function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const headFields = Object.keys(toHead({ labels: '[]' })) as (keyof TaskHead)[];
const taskColumns = [...headFields.map(columnOf), 'lane', ...columnFields];
const insertTaskSql = `insert into tasks (${taskColumns.join(', ')})
  values (${taskColumns.map(() => '?').join(', ')})`;

/** The most expired dedupe keys that one commit deletes: an append waits at most for one such commit. */
export const tidyStepMax = 1_000;

/** The shortest window: a message is committed with its job, so it is never published twice. */
const dedupeWindowMs = 1;

export interface TaskWriter {
  readonly handlers: Handlers<TaskOperations>;
  /** Call it after a rollback, which may have removed created consumer groups. */
  clearCache(): void;
}

export function createTaskWriter(database: DatabaseSync, bus: Handlers<BusOperations>): TaskWriter {
  const query = createSqlQuery(database);
  const { all, one, number } = query;
  const claims = createClaims(query);
  const existingGroups = new Set<string>();
  let nextAckAtMs = 0;

  function publish(messages: readonly TaskMessage[], nowMs: number): void {
    if (messages.length === 0) return;
    const entries = messages.map(({ entry }) => entry);
    const appended = bus['bus.append']({ entries, dedupeWindowMs, nowMs });
    for (const [at, { taskId, sequenceTarget }] of messages.entries()) {
      const seq = Number(appended[at]?.sequence ?? 0);
      if (taskId === undefined || sequenceTarget === undefined) continue;
      if (typeof sequenceTarget === 'string') {
        all(`update tasks set ${sequenceTarget} = ? where id = ?`, seq, taskId);
      } else {
        all(
          `update task_fields set signal_seq = ?
           where task = (select seq from tasks where id = ?) and name = ?`,
          seq,
          taskId,
          `step:${sequenceTarget.step}`,
        );
      }
    }
  }

  function isPublished({ taskId, sequenceTarget, entry }: TaskMessage): boolean {
    if (taskId === undefined || sequenceTarget === undefined) return false;
    const seq =
      typeof sequenceTarget === 'string'
        ? number(`select ${sequenceTarget} from tasks where id = ?`, taskId)
        : number(
            `select signal_seq from task_fields
             where task = (select seq from tasks where id = ?) and name = ?`,
            taskId,
            `step:${sequenceTarget.step}`,
          );
    const inBus = `select m.seq from bus_messages m join bus_streams s on s.id = m.stream_id
      where m.seq = ? and s.subject = ?`;
    return one(inBus, seq, entry.subject) !== undefined;
  }

  function enqueue(
    { head, fields, dedupe, messages }: WithMessages<EnqueueEntry>,
    nowMs: number,
  ): EnqueueOutcome {
    const mode = one('select mode from task_modes where type = ?', head.type)?.['mode'];
    if (mode === 'draining') return { kind: 'draining' };
    if (one('select 1 from tasks where id = ?', head.id) !== undefined) {
      return { kind: 'exists', id: head.id };
    }
    if (dedupe !== undefined) {
      const before = one(
        'select id from task_dedupes where type = ? and key = ? and until_ms > ?',
        head.type,
        dedupe.key,
        nowMs,
      );
      if (before !== undefined) return { kind: 'exists', id: String(before['id']) };
      all(
        `insert into task_dedupes (type, key, id, until_ms) values (?, ?, ?, ?)
         on conflict do update set id = excluded.id, until_ms = excluded.until_ms`,
        head.type,
        dedupe.key,
        head.id,
        dedupe.untilMs,
      );
    }
    all(
      insertTaskSql,
      ...headFields.map((name) => (name === 'labels' ? JSON.stringify(head.labels) : head[name])),
      laneOf(head, nowMs),
      fields['payload'] ?? 'null',
      fields['info'] ?? '{}',
      fields['run'] ?? '{}',
    );
    publish(messages, nowMs);
    return { kind: 'enqueued' };
  }

  function change(
    { id, guard, head, fields, messages }: WithMessages<TaskChange>,
    nowMs: number,
  ): ChangeOutcome {
    const row = one('select * from tasks where id = ?', id);
    if (row === undefined) return { kind: 'stale', head: undefined };
    const before = toHead(row);
    const { fence, revision } = guard;
    const holdsFence =
      fence === undefined || (before.state === 'running' && before.fence === fence);
    const isUnchanged = revision === undefined || before.revision === revision;
    if (!holdsFence || !isUnchanged) return { kind: 'stale', head: before };
    const after: TaskHead = { ...before, ...head };
    const columnValues = new Map<string, string | number>();
    for (const [name, value] of Object.entries(head)) {
      if (value !== undefined) columnValues.set(columnOf(name), value);
    }
    if (after.state !== 'running') columnValues.set('worker', '');
    for (const [name, value] of Object.entries(fields)) {
      if (columnFields.includes(name)) columnValues.set(name, value ?? 'null');
      else setField(row, name, value);
    }
    columnValues.set('lane', laneOf(after, nowMs));
    columnValues.set('revision', before.revision + 1);
    columnValues.set('updated_at_ms', nowMs);
    const assignments = [...columnValues.keys()].map((name) => `${name} = ?`).join(', ');
    all(`update tasks set ${assignments} where id = ?`, ...columnValues.values(), id);
    publish(messages, nowMs);
    const isFreed = before.state === 'running' && after.state !== 'running';
    if (isFreed && before.concurrencyKey !== '') claims.freeKey(before.type, before.concurrencyKey);
    return { kind: 'done', revision: before.revision + 1 };
  }

  function setField(task: SqlRow, name: string, value: string | null): void {
    const seq = task['seq'] ?? 0;
    if (value === null) {
      all('delete from task_fields where task = ? and name = ?', seq, name);
      return;
    }
    all(
      `insert into task_fields (task, name, value) values (?, ?, ?)
       on conflict do update set value = excluded.value, signal_seq = 0`,
      seq,
      name,
      value,
    );
  }

  /** The consumer groups of workers exist from the first claim on; `ackClaimed` acks for them. */
  function ensureGroups(queues: readonly WorkerQueue[]): void {
    for (const { group, subject } of queues) {
      if (existingGroups.has(group)) continue;
      existingGroups.add(group);
      const filters = [subject, redoSubject(group)];
      const from = { kind: 'after', seq: 0 } as const;
      bus['bus.ensureGroup']({
        group: { name: group, filters, from, leaseMs: 30_000, maxAckPending: 1_000 },
      });
    }
  }

  /**
   * Acks the messages of claimed jobs for the groups of workers, so that the bus may trim the streams. Acks stop before
   * the first job that waits for a worker; finding that job scans all waiting jobs.
   */
  function ackClaimed(): void {
    if (performance.now() < nextAckAtMs) return;
    const startedAtMs = performance.now();
    for (const { id = 0, name, filters } of all(
      `select id, name, filters from bus_groups where name like '%-workers'`,
    )) {
      const type = String(name).slice(0, -'-workers'.length);
      if (!String(filters).includes(`.tasks.${type}.queue`)) continue;
      const waiting = [taskLane.ready, taskLane.blocked].flatMap((lane) => {
        const sql = `select min(queue_seq) as seq from tasks
          where type = ? and lane = ${lane} and state = 'queued' and queue_seq > 0`;
        const { seq } = one(sql, type) ?? {};
        return typeof seq === 'number' ? [seq] : [];
      });
      const { seq: last } = one('select max(seq) as seq from bus_messages') ?? {};
      const cursor = waiting.length > 0 ? Math.min(...waiting) - 1 : Number(last ?? 0);
      all('update bus_groups set cursor = ? where id = ? and cursor < ?', cursor, id, cursor);
    }
    // Bound the scans to one percent of the time of the thread.
    nextAckAtMs = performance.now() + 100 * (performance.now() - startedAtMs);
  }

  const handlers: Handlers<TaskOperations> = {
    'tasks.enqueue': ({ entries, nowMs }) => entries.map((entry) => enqueue(entry, nowMs)),
    'tasks.changeAndClaim': ({ changes, claim, queues, nowMs }) => {
      const outcomes = changes.map((each) => change(each, nowMs));
      if (claim === undefined) return { outcomes, claimed: [], freeAtMs: null };
      const found = claims.claim(claim);
      ensureGroups(queues);
      return { outcomes, ...found };
    },
    'tasks.beat': (beat) => writeBeat(all, beat),
    'tasks.forgetWorker': ({ worker }) =>
      void all('delete from task_workers where worker = ?', worker),
    'tasks.remove': ({ refs }) => refs.reduce((sum, { id }) => sum + remove(id), 0),
    'tasks.tidy': ({ nowMs }) => {
      const expired = all(
        `delete from task_dedupes where (type, key) in (select type, key from task_dedupes
           where until_ms <= ? order by until_ms limit ${tidyStepMax}) returning 1`,
        nowMs,
      );
      if (expired.length === tidyStepMax) return true;
      // A key without a running job has room, even if a release was missed.
      all(
        `update tasks set lane = ${taskLane.ready}
         where lane = ${taskLane.blocked} and not exists (select 1 from tasks r
           where r.state = 'running' and r.type = tasks.type
             and r.concurrency_key = tasks.concurrency_key)`,
      );
      ackClaimed();
      return false;
    },
    'tasks.setMode': ({ type, mode }) => {
      all('delete from task_modes where type = ?', type);
      if (mode !== 'open') all('insert into task_modes (type, mode) values (?, ?)', type, mode);
      return undefined;
    },
    'tasks.repair': ({ messages, nowMs }) => {
      const missing = messages.filter((message) => !isPublished(message));
      publish(missing, nowMs);
      return missing.length;
    },
  };

  function remove(id: string): number {
    const seq = number('select seq from tasks where id = ? and ended_at_ms > 0', id);
    if (seq === 0) return 0;
    all('delete from task_fields where task = ?', seq);
    all('delete from tasks where seq = ?', seq);
    return 1;
  }

  return { handlers, clearCache: () => existingGroups.clear() };
}

function laneOf({ state, dueAtMs }: TaskHead, nowMs: number): number {
  if (state === 'running' || isTerminal(state)) return taskLane.closed;
  return dueAtMs <= nowMs ? taskLane.ready : taskLane.later;
}

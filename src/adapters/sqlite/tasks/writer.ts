// What tasks do inside the writer thread: each request within the commit that answers it, the record and
// the messages of the bus together.

import type { DatabaseSync } from 'node:sqlite';
import type { Appended, EngineEntry } from '../../../bus/bus-engine.ts';
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
import type { TaskHead, TaskRef } from '../../../tasks/task-job.ts';
import { createBusQuery } from '../thread/query.ts';
import type { BusRequest } from '../bus/writer.ts';
import { createSqliteClaims, type SqliteClaimed } from './claims.ts';
import { columnFields, toHead } from './rows.ts';
import type { SqlRow } from '../thread/writer.ts';

/** A signal as it is stored, and the row that remembers where. */
export interface TaskMessage {
  readonly entry: EngineEntry;
  readonly taskId: string | undefined;
  readonly place: 'queue' | 'terminal' | 'none' | { readonly step: string };
}

type WithMessages<T> = Omit<T, 'signals'> & { readonly messages: readonly TaskMessage[] };

/** The group of a type's workers, and the stream that it reads. */
interface QueueOf {
  readonly type: string;
  readonly group: string;
  readonly subject: string;
}

interface TaskAnswers {
  readonly enqueue: readonly EnqueueOutcome[];
  readonly exchange: SqliteClaimed & { readonly outcomes: readonly ChangeOutcome[] };
  readonly beat: undefined;
  readonly forgetWorker: undefined;
  readonly remove: number;
  readonly tidy: undefined;
  readonly setMode: undefined;
  readonly repair: number;
}

export type TaskRequest =
  | {
      readonly op: 'enqueue';
      readonly entries: readonly WithMessages<EnqueueEntry>[];
      readonly nowMs: number;
    }
  | {
      readonly op: 'exchange';
      readonly changes: readonly WithMessages<TaskChange>[];
      readonly claim: ClaimRequest | undefined;
      readonly queues: readonly QueueOf[];
      readonly nowMs: number;
    }
  | { readonly op: 'beat'; readonly beat: WorkerBeat }
  | { readonly op: 'forgetWorker'; readonly worker: string }
  | { readonly op: 'remove'; readonly refs: readonly TaskRef[] }
  | { readonly op: 'tidy'; readonly nowMs: number }
  | { readonly op: 'setMode'; readonly type: string; readonly mode: TypeMode }
  | { readonly op: 'repair'; readonly messages: readonly TaskMessage[]; readonly nowMs: number };

export type TaskAnswer<R extends TaskRequest> = TaskAnswers[R['op']];

const headColumns: Readonly<Record<string, string>> = {
  state: 'state',
  fence: 'fence',
  priority: 'priority',
  dueAtMs: 'due_at_ms',
  failures: 'failures',
  worker: 'worker',
  deadlineMs: 'deadline_ms',
  cancelAtMs: 'cancel_at_ms',
  endedAtMs: 'ended_at_ms',
};

/** A message is stored with the record that it tells of: nothing is ever stored twice. */
const dedupeWindowMs = 1;

export interface SqliteTasks {
  /** Within the caller's transaction. */
  execute(request: TaskRequest): unknown;
  /** After a rollback: groups that it undid are created again. */
  forgetGroups(): void;
}

export function createSqliteTasks(
  database: DatabaseSync,
  bus: (request: BusRequest) => unknown,
): SqliteTasks {
  const query = createBusQuery(database);
  const { all, one, number } = query;
  const claims = createSqliteClaims(query);
  const grouped = new Set<string>();
  let ackAgainAtMs = 0;

  function tell(messages: readonly TaskMessage[], nowMs: number): void {
    if (messages.length === 0) return;
    const entries = messages.map(({ entry }) => entry);
    const appended = bus({
      op: 'append',
      entries,
      dedupeWindowMs,
      nowMs,
      isRelaxed: false,
    }) as readonly Appended[];
    for (const [at, { taskId, place }] of messages.entries()) {
      const seq = Number(appended[at]?.sequence ?? 0);
      if (taskId === undefined || place === 'none') continue;
      if (place === 'queue') all('update tasks set queue_seq = ? where id = ?', seq, taskId);
      else if (place === 'terminal') {
        all('update tasks set terminal_seq = ? where id = ?', seq, taskId);
      } else {
        all(
          `update task_fields set signal_seq = ?
           where task = (select seq from tasks where id = ?) and name = ?`,
          seq,
          taskId,
          `step:${place.step}`,
        );
      }
    }
  }

  function isTold({ taskId, place, entry }: TaskMessage): boolean {
    if (taskId === undefined || place === 'none') return false;
    const [seq] = Object.values(
      place === 'queue'
        ? (one('select queue_seq from tasks where id = ?', taskId) ?? {})
        : place === 'terminal'
          ? (one('select terminal_seq from tasks where id = ?', taskId) ?? {})
          : (one(
              `select signal_seq from task_fields
               where task = (select seq from tasks where id = ?) and name = ?`,
              taskId,
              `step:${place.step}`,
            ) ?? {}),
    );
    return (
      one(
        `select m.seq from bus_messages m join bus_streams s on s.id = m.stream_id
         where m.seq = ? and s.subject = ?`,
        seq ?? 0,
        entry.subject,
      ) !== undefined
    );
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
      `insert into tasks (id, type, tenant, state, lane, revision, fence, priority, due_at_ms,
         concurrency_key, failures, worker, deadline_ms, cancel_at_ms, parent_id, labels,
         enqueued_at_ms, claimed_at_ms, updated_at_ms, ended_at_ms, payload, info, run)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      head.id,
      head.type,
      head.tenant,
      head.state,
      laneOf(head, nowMs),
      head.revision,
      head.fence,
      head.priority,
      head.dueAtMs,
      head.concurrencyKey,
      head.failures,
      head.worker,
      head.deadlineMs,
      head.cancelAtMs,
      head.parentId,
      JSON.stringify(head.labels),
      head.enqueuedAtMs,
      head.claimedAtMs,
      head.updatedAtMs,
      head.endedAtMs,
      fields['payload'] ?? 'null',
      fields['info'] ?? '{}',
      fields['run'] ?? '{}',
    );
    tell(messages, nowMs);
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
    const isHeld = fence === undefined || (before.state === 'running' && before.fence === fence);
    const isAsSeen = revision === undefined || before.revision === revision;
    if (!isHeld || !isAsSeen) return { kind: 'stale', head: before };
    const after: TaskHead = { ...before, ...head };
    const sets = Object.entries(head).flatMap(([name, value]) =>
      value === undefined ? [] : [[headColumns[name] ?? name, value] as const],
    );
    if (after.state !== 'running') sets.push(['worker', '']);
    const columns = Object.entries(fields).filter(([name]) => columnFields.includes(name));
    for (const [name, value] of columns) sets.push([name, value ?? 'null']);
    // The last word on a column counts: `worker` may be there twice.
    const last = new Map<string, string | number>(sets);
    last.set('lane', laneOf(after, nowMs));
    last.set('revision', before.revision + 1);
    last.set('updated_at_ms', nowMs);
    all(
      `update tasks set ${[...last.keys()].map((name) => `${name} = ?`).join(', ')} where id = ?`,
      ...last.values(),
      id,
    );
    for (const [name, value] of Object.entries(fields)) {
      if (!columnFields.includes(name)) setField(row, name, value);
    }
    tell(messages, nowMs);
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

  /** The workers' groups are there from the first claim on; the sweeper acks for them. */
  function ensureGroups(queues: readonly QueueOf[]): void {
    for (const { group, subject } of queues) {
      if (grouped.has(group)) continue;
      grouped.add(group);
      const filters = [subject, redoSubject(group)];
      const start = { kind: 'after', seq: 0 } as const;
      bus({
        op: 'ensureGroup',
        group: { name: group, filters, start, leaseMs: 30_000, maxAckPending: 1_000 },
      });
    }
  }

  /**
   * What was handed out is acked for the workers' groups, up to the first job that waits for a worker: the
   * bus may trim the streams behind it. To find that one takes a look at all that wait.
   */
  function ackHandedOut(): void {
    if (performance.now() < ackAgainAtMs) return;
    const beganMs = performance.now();
    for (const { id = 0, name, filters } of all(
      `select id, name, filters from bus_groups where name like '%-workers'`,
    )) {
      const type = String(name).slice(0, -'-workers'.length);
      if (!String(filters).includes(`.tasks.${type}.queue`)) continue;
      const waiting = [1, 3].flatMap((lane) => {
        const sql = `select min(queue_seq) as seq from tasks
          where type = ? and lane = ${lane} and state = 'queued' and queue_seq > 0`;
        const { seq } = one(sql, type) ?? {};
        return typeof seq === 'number' ? [seq] : [];
      });
      const { seq: last } = one('select max(seq) as seq from bus_messages') ?? {};
      const cursor = waiting.length > 0 ? Math.min(...waiting) - 1 : Number(last ?? 0);
      all('update bus_groups set cursor = ? where id = ? and cursor < ?', cursor, id, cursor);
    }
    // Whatever it costs: a hundredth of the time at most.
    ackAgainAtMs = performance.now() + 100 * (performance.now() - beganMs);
  }

  function execute(request: TaskRequest): unknown {
    switch (request.op) {
      case 'enqueue':
        return request.entries.map((entry) => enqueue(entry, request.nowMs));
      case 'exchange': {
        const outcomes = request.changes.map((each) => change(each, request.nowMs));
        const none: SqliteClaimed = { claimed: [], freeAtMs: null };
        const found = request.claim === undefined ? none : claims.claim(request.claim);
        if (request.claim !== undefined) ensureGroups(request.queues);
        return { outcomes, ...found };
      }
      case 'beat': {
        const { worker, aliveUntilMs, about = null } = request.beat;
        return beatOnce(all, { worker, aliveUntilMs, about });
      }
      case 'forgetWorker':
        all('delete from task_workers where worker = ?', request.worker);
        return undefined;
      case 'remove':
        return request.refs.reduce((sum, { id }) => sum + remove(id), 0);
      case 'tidy':
        all('delete from task_dedupes where until_ms <= ?', request.nowMs);
        // A key that nobody runs has room, whatever was missed.
        all(
          `update tasks set lane = 1 where lane = 3 and not exists (select 1 from tasks r
             where r.state = 'running' and r.type = tasks.type
               and r.concurrency_key = tasks.concurrency_key)`,
        );
        ackHandedOut();
        return undefined;
      case 'setMode':
        all('delete from task_modes where type = ?', request.type);
        if (request.mode !== 'open') {
          all('insert into task_modes (type, mode) values (?, ?)', request.type, request.mode);
        }
        return undefined;
      default: {
        const missing = request.messages.filter((message) => !isTold(message));
        tell(missing, request.nowMs);
        return missing.length;
      }
    }
  }

  function remove(id: string): number {
    const seq = number('select seq from tasks where id = ? and ended_at_ms > 0', id);
    if (seq === 0) return 0;
    all('delete from task_fields where task = ?', seq);
    all('delete from tasks where seq = ?', seq);
    return 1;
  }

  return { execute, forgetGroups: () => grouped.clear() };
}

/** Also from the thread that beats while the main one is busy. */
export function beatOnce(
  all: (sql: string, ...values: readonly (string | number | null)[]) => unknown,
  beat: { readonly worker: string; readonly aliveUntilMs: number; readonly about: string | null },
): undefined {
  all(
    `insert into task_workers (worker, alive_until_ms, about) values (?, ?, ?)
     on conflict do update set alive_until_ms = excluded.alive_until_ms,
       about = coalesce(excluded.about, about)`,
    beat.worker,
    beat.aliveUntilMs,
    beat.about,
  );
}

function laneOf({ state, dueAtMs }: TaskHead, nowMs: number): number {
  if (state === 'running' || state === 'completed' || state === 'failed' || state === 'cancelled') {
    return 0;
  }
  return dueAtMs <= nowMs ? 1 : 2;
}

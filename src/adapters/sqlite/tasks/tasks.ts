// Tasks in an SQLite file: no server, several processes. Writes go through the writer thread, which
// commits all that wait together; the messages of the bus are in the same commit.

import { mkdirSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { createMessageCodec } from '../../../bus/message-codec.ts';
import { consumerGroups } from '../../../contracts/subject-groups.ts';
import { createSubjects } from '../../../contracts/subjects.ts';
import { aborted, systemClock } from '../../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../../foundation/error.ts';
import { createWaiters } from '../../../store/waiters.ts';
import { createTasks, type TasksOptions } from '../../../tasks/create-tasks.ts';
import type { ClaimRequest, ClaimWait, TaskEngine } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import type { TaskSignal } from '../../../tasks/task-signal.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { describeFailure, sqliteError } from '../connection/error.ts';
import { pathOf } from '../connection/path.ts';
import { openSqliteTaskReader } from './reader.ts';
import type { TaskAnswer, TaskMessage, TaskRequest } from './writer.ts';
import { watchSqlite } from '../connection/watch.ts';
import { startSqliteWriter, type SqliteWriter } from '../thread/writer.ts';

export interface SqliteTasksOptions extends TasksOptions {
  /** How long a write waits for another process's write. Default: 10 s. */
  readonly busyTimeoutMs?: number | undefined;
}

/** Looked at by file events; this is for file systems that have none. */
const watchPollMs = 250;
/** No timer is set for longer. */
const sleepMsMax = 2_147_483_647;

/**
 * Opens (and, where they are new, creates) the tasks in a file: the bus's, whose streams are told of them.
 * It may be the event store's, too. Several processes may open one file.
 *
 * @example
 * import { sqliteTasks } from 'millrace/adapters/sqlite';
 * import { taskType } from 'millrace/tasks';
 *
 * await using tasks = await sqliteTasks('sqlite:.millrace/bus.db', { types: [taskType('email-send')] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export async function sqliteTasks(url: string, options: SqliteTasksOptions = {}): Promise<Tasks> {
  const { busyTimeoutMs = 10_000 } = options;
  const path = pathOf(url);
  mkdirSync(dirname(path), { recursive: true });
  const writer = await startSqliteWriter({ path, busyTimeoutMs });
  const closing = async (): Promise<void> => writer[Symbol.asyncDispose]();
  return sqliteTasksIn({ path, writer, closing }, options);
}

/** A file with a writer thread; the thread goes on after the tasks are closed, unless `closing` ends it. */
export interface SqliteTasksFile {
  readonly path: string;
  readonly writer: SqliteWriter;
  readonly closing?: () => Promise<void>;
}

/** The tasks in a file that is open. */
export function sqliteTasksIn(file: SqliteTasksFile, options: SqliteTasksOptions = {}): Tasks {
  return createTasks(createEngine(file, options), options);
}

function createEngine(
  { path, writer, closing = async () => undefined }: SqliteTasksFile,
  { busyTimeoutMs = 10_000, clock = systemClock, root }: SqliteTasksOptions,
): TaskEngine {
  const subjects = createSubjects<string>(root === undefined ? {} : { root });
  const codec = createMessageCodec({ clock });
  const waiters = createWaiters();
  const reader = openSqliteTaskReader(path, busyTimeoutMs);
  let version = reader.dataVersion();
  const others = watchSqlite({
    path,
    pollIntervalMs: watchPollMs,
    hasMore() {
      const before = version;
      version = reader.dataVersion();
      return version !== before;
    },
    onMore: () => waiters.wakeAll(),
  });
  let isClosed = false;

  async function write<R extends TaskRequest>(request: R): Promise<TaskAnswer<R>> {
    try {
      const answer = (await writer.tasks(request)) as TaskAnswer<R>;
      waiters.wakeAll();
      return answer;
    } catch (error) {
      throw tasksError(error);
    }
  }

  function read<T>(work: () => T): T {
    if (isClosed) throw closed();
    try {
      return work();
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      throw tasksError(sqliteError(describeFailure(error), { path, doing: 'read' }));
    }
  }

  function messageOf(signal: TaskSignal): TaskMessage {
    const { taskId, step } = signal.payload;
    const entry = codec.encode(signal);
    const id = typeof taskId === 'string' ? taskId : undefined;
    if (signal.subject.endsWith('.queue')) return { entry, taskId: id, place: 'queue' };
    if (signal.subject.endsWith('.terminal')) return { entry, taskId: id, place: 'terminal' };
    return { entry, taskId: id, place: typeof step === 'string' ? { step } : 'none' };
  }
  const withMessages = <T extends { readonly signals: readonly TaskSignal[] }>(item: T) => {
    const { signals, ...rest } = item;
    return { ...rest, messages: signals.map(messageOf) };
  };

  const queuesOf = (request: ClaimRequest) =>
    request.rules.map(({ type }) => ({
      type,
      group: consumerGroups.workers<string>(type),
      subject: subjects.tasks.type<string>(type).queue,
    }));

  async function claim(
    request: ClaimRequest,
    { waitMs, signal }: ClaimWait,
  ): Promise<readonly StoredTask[]> {
    const leaseMs = request.aliveUntilMs - request.nowMs;
    const deadlineMs = clock.now() + waitMs;
    const types = request.rules.map(({ type }) => type);
    const queues = queuesOf(request);
    for (let nowMs = request.nowMs; ; nowMs = clock.now()) {
      if (signal.aborted) throw aborted(signal);
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      // Joined before the look: what commits in between wakes us.
      const woken = waiters.wait(either, () => false);
      // Cancelled while the claim is with the writer: nobody awaits this one then.
      woken.catch(() => undefined);
      others.setWaiting(true);
      try {
        // Looked at without the writer first: whoever waits must not take the write lock for nothing.
        let dueMs = read(() => reader.dueAtMs(types, nowMs));
        if (dueMs === 0) {
          const asked = { ...request, nowMs, aliveUntilMs: nowMs + leaseMs };
          // Not by `write`, which would wake this wait by its own look.
          const found = await claimNow(asked, queues, nowMs);
          if (found.claimed.length > 0) return found.claimed;
          dueMs = found.freeAtMs ?? undefined;
        }
        const leftMs = deadlineMs - clock.now();
        if (leftMs <= 0) return [];
        const sleepMs = Math.min(leftMs, (dueMs ?? Infinity) - clock.now(), sleepMsMax);
        await Promise.race([woken, clock.sleep(Math.max(0, sleepMs), either)]);
      } finally {
        over.abort('over');
        await woken.catch(() => undefined);
        if (waiters.size === 0) others.setWaiting(false);
      }
    }
  }

  async function claimNow(
    asked: ClaimRequest,
    queues: ReturnType<typeof queuesOf>,
    nowMs: number,
  ): Promise<TaskAnswer<TaskRequest & { readonly op: 'exchange' }>> {
    try {
      const request = { op: 'exchange', changes: [], claim: asked, queues, nowMs } as const;
      return (await writer.tasks(request)) as TaskAnswer<typeof request>;
    } catch (error) {
      throw tasksError(error);
    }
  }

  return {
    capabilities: {
      durable: true,
      crossProcess: true,
      atomicSignals: true,
      exactLimits: true,
      exactOrder: true,
    },
    beatThread: {
      module: new URL(`./beat${extname(import.meta.url)}`, import.meta.url).href,
      settings: { path, busyTimeoutMs },
    },
    enqueue: (entries, nowMs) =>
      write({ op: 'enqueue', entries: entries.map(withMessages), nowMs }),
    async exchange(changes, asked, nowMs) {
      const claiming = asked === undefined ? undefined : { ...asked, nowMs };
      const { outcomes, claimed } = await write({
        op: 'exchange',
        changes: changes.map(withMessages),
        claim: claiming,
        queues: asked === undefined ? [] : queuesOf(asked),
        nowMs,
      });
      return { outcomes, claimed };
    },
    claim,
    get: async (refs) => read(() => reader.get(refs)),
    heads: async (refs) => read(() => reader.heads(refs)),
    list: async (filter, page) => read(() => reader.list(filter, page)),
    counts: async () => read(() => reader.counts()),
    beat: (beat) => write({ op: 'beat', beat }),
    workers: async () => read(() => reader.workers()),
    forgetWorker: (worker) => write({ op: 'forgetWorker', worker }),
    overdue: async ({ nowMs, limit }) => read(() => reader.overdue(nowMs, limit)),
    dueScheduled: async ({ nowMs, limit }) => read(() => reader.dueScheduled(nowMs, limit)),
    endedBefore: async ({ type, beforeMs, limit }) =>
      read(() => reader.endedBefore(type, beforeMs, limit)),
    remove: (refs) => write({ op: 'remove', refs }),
    tidy: (nowMs) => write({ op: 'tidy', nowMs }),
    setMode: (type, mode) => write({ op: 'setMode', type, mode }),
    modes: async () => read(() => reader.modes()),
    repair: (signals, nowMs) => write({ op: 'repair', messages: signals.map(messageOf), nowMs }),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      others.close();
      // The last connection to close empties the log into the file, and only the writer's may.
      reader.close();
      await closing();
      waiters.wakeAll();
    },
  };
}

const closed = (cause?: unknown): MillraceError =>
  new MillraceError('TASKS_CLOSED', 'the tasks were closed', { cause });

function tasksError(error: unknown): unknown {
  if (hasCode(error, 'STORE_CLOSED')) return closed(error);
  if (!hasCode(error, 'STORE_UNAVAILABLE')) return error;
  const { message, details, retryable } = error;
  return new MillraceError('TASKS_UNAVAILABLE', message, { details, retryable, cause: error });
}

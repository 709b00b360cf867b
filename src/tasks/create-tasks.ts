// Tasks over an engine: checks at the edge, decisions, and the batches in which they go.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { createSubjects, type Subjects } from '../contracts/subjects.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import {
  checkName,
  checkWorker,
  encodeValue,
  invalid,
  refOf,
  toFilter,
  wholeNumber,
} from './check-task.ts';
import {
  decideCancel,
  decideEvent,
  decideRetry,
  decideWake,
  deadlineGraceMs,
  type DecideContext,
  type Decision,
} from './decide-task.ts';
import { createGather } from './gather.ts';
import { prepareTask } from './prepare-task.ts';
import type { ClaimRequest, EnqueueEntry, EnqueueOutcome, TaskEngine } from './task-engine.ts';
import { createTaskExchange } from './task-exchange.ts';
import { createTaskHolds, endedChildren } from './task-holds.ts';
import { isTerminal, type StoredTask } from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { runOf, toTask, type Task } from './task-record.ts';
import { createSignals, type SignalMaker } from './task-signal.ts';
import { timelineOf } from './task-timeline.ts';
import { taskType, type TaskType } from './task-type.ts';
import type { BulkOutcome, ClaimOptions, Enqueued, NewTask, TaskQuery, Tasks } from './tasks.ts';

export interface TasksOptions {
  /** Those that are taken; `setTypes` changes them while it runs. */
  readonly types?: readonly TaskType[] | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** Root of the subjects. Default: `gbe`. */
  readonly root?: string | undefined;
}

/** What the sweeper and the workers of this folder use beside the port. */
export interface TasksInside {
  readonly engine: TaskEngine;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signals: SignalMaker;
  readonly subjects: Subjects<string>;
  readonly decideContext: (type: string) => DecideContext;
  /** With the record's revision as its guard. False: somebody else was first, or nothing was decided. */
  readonly change: (
    task: StoredTask,
    decide: (task: StoredTask, context: DecideContext) => Decision | undefined,
  ) => Promise<boolean>;
  /** True: all of its children have ended, and it was woken. */
  readonly wakeParent: (id: string) => Promise<boolean>;
}

const insides = new WeakMap<Tasks, TasksInside>();

export function insideOf(tasks: Tasks): TasksInside {
  const inside = insides.get(tasks);
  if (inside === undefined) throw invalid('tasks', 'must come from createTasks');
  return inside;
}

/** After so many others were quicker, the caller is told. */
const triesMax = 20;

/**
 * Tasks over an engine; what the adapters of Millrace do, and whoever brings an engine of their own.
 *
 * @example
 * import { createTasks, memoryTaskEngine, taskType } from 'millrace/tasks';
 *
 * await using tasks = createTasks(memoryTaskEngine(), { types: [taskType('email-send', { workers: 4 })] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export function createTasks(engine: TaskEngine, options: TasksOptions = {}): Tasks {
  const { clock = systemClock } = options;
  const observer = safeObserver(options.observer ?? silentObserver);
  const ids = createIds({ clock });
  const subjects: Subjects<string> = createSubjects<string>(
    options.root === undefined ? {} : { root: options.root },
  );
  const signals = createSignals(subjects);
  const closing = new AbortController();
  let types = new Map((options.types ?? []).map((type) => [type.name, type]));
  /** Of types that are no longer configured: their jobs are still worked off by the old rules. */
  const retired = new Map<string, TaskType>();

  const exchange = createTaskExchange(engine, () => clock.now());
  const enqueues = createGather<EnqueueEntry, EnqueueOutcome>(
    (entries) => engine.enqueue(entries, clock.now()),
    { batchMax: limits.enqueueMax },
  );

  function failIfClosed(): void {
    if (closing.signal.aborted) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }

  function typeOf(name: string): TaskType {
    const type = types.get(name);
    if (type !== undefined) return type;
    throw new MillraceError('TASK_TYPE_UNKNOWN', `no task type '${name}' is configured`, {
      details: { type: name, known: [...types.keys()].slice(0, 50) },
    });
  }

  function decideContext(name: string): DecideContext {
    const type = types.get(name) ?? retired.get(name) ?? taskType(name);
    return { nowMs: clock.now(), type, signals };
  }

  async function load(id: string): Promise<StoredTask> {
    const [task] = await engine.get([refOf(id)]);
    if (task !== undefined) return task;
    throw new MillraceError('TASK_UNKNOWN', `there is no job ${id}`, { details: { id } });
  }

  const change: TasksInside['change'] = async (task, decide) => {
    const { id, type, revision } = task.head;
    const decided = decide(task, decideContext(type));
    if (decided === undefined) return false;
    const outcome = await exchange.change({
      id,
      type,
      guard: { revision },
      ...onlyChange(decided),
    });
    if (outcome.kind === 'stale') return false;
    const state = decided.head.state ?? task.head.state;
    if (state !== 'running') holds.forget(id);
    if (isTerminal(state)) await afterEnd({ ...task, head: { ...task.head, ...decided.head } });
    return true;
  };

  /** Until it is changed, or there is nothing to change. */
  async function changeNow(
    id: string,
    decide: (task: StoredTask, context: DecideContext) => Decision | undefined,
  ): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const task = await load(id);
      if (decide(task, decideContext(task.head.type)) === undefined) return false;
      if (await change(task, decide)) return true;
    }
    throw new MillraceError('TASK_CONFLICT', `job ${id} kept changing`, { details: { id } });
  }

  async function afterEnd({ head }: StoredTask): Promise<void> {
    observer.count?.('tasks_ended_total', { type: head.type, state: head.state });
    const seconds = (head.endedAtMs - head.enqueuedAtMs) / 1_000;
    observer.record?.('task_duration_seconds', seconds, { type: head.type, state: head.state });
    if (head.parentId === '') return;
    try {
      await wakeParent(head.parentId);
    } catch (err) {
      // The sweeper finds a parent whose children have all ended.
      observer.log?.warn({ taskId: head.parentId, err }, 'parent could not be woken');
    }
  }

  async function wakeParent(id: string): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const [parent] = await engine.get([refOf(id)]);
      if (parent?.head.state !== 'waiting') return false;
      const { waitsFor } = runOf(parent);
      if (waitsFor?.kind !== 'children') return false;
      if ((await endedChildren(engine, waitsFor.ids)) === undefined) return false;
      if (await change(parent, decideWake)) return true;
    }
    return false;
  }

  const holds = createTaskHolds({
    engine,
    exchange,
    decideContext,
    afterEnd,
    wakeParent,
    enqueueMany: (tasks) => made.enqueueMany(tasks),
  });

  function claimRequest(asked: ClaimOptions): ClaimRequest {
    const nowMs = clock.now();
    const leaseMs = leaseOf(asked.leaseMs);
    const wanted = Object.entries(asked.types);
    const rules = wanted.map(([name, limit]) => {
      const type = types.get(name) ?? retired.get(name) ?? typeOf(name);
      return {
        type: name,
        limit: wholeNumber(`types.${name}`, limit, { min: 0, max: limits.workersMax }),
        deadlineAfterMs: type.stepTimeoutMs + deadlineGraceMs,
        rate: type.rate,
        keyLimit: type.concurrencyLimit,
      };
    });
    const room = rules.reduce((sum, { limit }) => sum + limit, 0);
    const limit = wholeNumber('limit', asked.limit ?? Math.min(room, limits.batchMax), {
      min: 0,
      max: limits.batchMax,
    });
    return {
      worker: checkWorker(asked.worker),
      aliveUntilMs: nowMs + leaseMs,
      rules: rules.filter((rule) => rule.limit > 0),
      limit,
      nowMs,
    };
  }

  async function bulk(
    query: TaskQuery,
    one: (task: Task) => Promise<boolean>,
  ): Promise<BulkOutcome> {
    const total = { changed: 0, skipped: 0 };
    for (let cursor: string | undefined; ;) {
      const page = await made.list(query, { cursor, limit: limits.batchMax });
      for (const isChanged of await Promise.all(page.tasks.map(one))) {
        if (isChanged) total.changed += 1;
        else total.skipped += 1;
      }
      if (page.cursor === undefined) return total;
      cursor = page.cursor;
    }
  }

  const made: Tasks = {
    capabilities: engine.capabilities,

    async enqueue(task) {
      const [enqueued] = await made.enqueueMany([task]);
      return enqueued as Enqueued;
    },
    async enqueueMany(tasks) {
      wholeNumber('tasks', tasks.length, { min: 0, max: limits.enqueueMax });
      failIfClosed();
      const nowMs = clock.now();
      const entries = tasks.map((task: NewTask) =>
        prepareTask(task, { type: typeOf(task.type), ids, nowMs, signals }),
      );
      const outcomes = await Promise.all(entries.map((entry) => enqueues.add(entry)));
      return entries.map(({ head }, at): Enqueued => {
        const outcome = outcomes[at];
        const { type } = head;
        if (outcome?.kind === 'draining') {
          observer.count?.('tasks_refused_total', { type });
          const message = `task type '${type}' takes no new jobs, it is drained`;
          throw new MillraceError('TASK_TYPE_DRAINING', message, { details: { type } });
        }
        const isDuplicate = outcome?.kind === 'exists';
        if (isDuplicate) observer.count?.('tasks_duplicates_total', { type });
        else observer.count?.('tasks_enqueued_total', { type });
        return { id: outcome?.kind === 'exists' ? outcome.id : head.id, isDuplicate };
      });
    },

    async get(id) {
      failIfClosed();
      const [task] = await engine.get([refOf(id)]);
      return task === undefined ? undefined : toTask(task);
    },
    async list(query = {}, { cursor, limit = limits.pageDefault } = {}) {
      failIfClosed();
      wholeNumber('limit', limit, { min: 1, max: limits.pageMax });
      const page = await engine.list(toFilter(query), { cursor, limit });
      return { tasks: page.tasks.map(toTask), cursor: page.cursor };
    },
    counts: () => engine.counts(),
    timeline: async (id) => timelineOf(await load(id)),
    async whenEnded(id, { timeoutMs, signal } = {}) {
      const either = eitherOf(signal, closing.signal);
      const untilMs = timeoutMs === undefined ? Infinity : clock.now() + timeoutMs;
      for (let waitMs = 10; ; waitMs = Math.min(waitMs * 2, 500)) {
        const task = await load(id);
        if (isTerminal(task.head.state)) return toTask(task);
        const leftMs = untilMs - clock.now();
        if (leftMs <= 0) {
          throw new MillraceError('TASK_TIMEOUT', `job ${id} has not ended in time`, {
            details: { id, state: task.head.state },
          });
        }
        await clock.sleep(Math.min(waitMs, leftMs), either);
      }
    },

    async cancel(id, { reason = 'cancelled', deadlineMs } = {}) {
      return changeNow(id, (task, decide) =>
        decideCancel(
          task,
          { reason, deadlineMs: deadlineMs ?? decide.type.cancelDeadlineMs },
          decide,
        ),
      );
    },
    async retry(id, { fromStep } = {}) {
      if (fromStep !== undefined) checkName('fromStep', fromStep);
      return changeNow(id, (task, decide) => decideRetry(task, { fromStep }, decide));
    },
    async sendEvent(id, { name, payload = null, eventId = ids.next() }) {
      checkName('name', name);
      checkName('eventId', eventId);
      encodeValue('payload', payload);
      return changeNow(id, (task, decide) =>
        decideEvent(task, { name, id: eventId, payload }, decide),
      );
    },
    cancelMany: (query, how = {}) => bulk(query, ({ id }) => made.cancel(id, how)),
    retryMany: (query) => bulk(query, ({ id }) => made.retry(id)),

    pause: (type) => engine.setMode(typeOf(type).name, 'paused'),
    drain: (type) => engine.setMode(typeOf(type).name, 'draining'),
    resume: (type) => engine.setMode(typeOf(type).name, 'open'),
    async modes() {
      const modes = await engine.modes();
      return Object.fromEntries(modes.map(({ type, mode }) => [type, mode]));
    },

    async claim(asked) {
      failIfClosed();
      const waitMs = wholeNumber('waitMs', asked.waitMs ?? limits.claimWaitMsDefault, {
        min: 0,
        max: limits.waitMsMax,
      });
      const request = claimRequest(asked);
      if (request.limit === 0 || request.rules.length === 0) return [];
      const along = await exchange.claimAlong(request);
      const isEnough = along !== undefined && (along.length > 0 || waitMs === 0);
      const claimed = isEnough
        ? along
        : await engine.claim(
            { ...request, nowMs: clock.now() },
            { waitMs, signal: eitherOf(asked.signal, closing.signal) },
          );
      return claimed.map((task) => {
        holds.remember(task);
        const { id, fence, type, dueAtMs, claimedAtMs } = task.head;
        const lateMs = Math.max(0, claimedAtMs - dueAtMs);
        observer.record?.('task_start_delay_ms', lateMs, { type });
        return { token: { id, fence }, task: toTask(task) };
      });
    },
    async heartbeat({ worker, leaseMs, tokens = [], about }) {
      checkWorker(worker);
      const aliveUntilMs = clock.now() + leaseOf(leaseMs);
      const text = about === undefined ? undefined : encodeValue('about', about);
      await engine.beat({ worker, aliveUntilMs, about: text });
      if (tokens.length === 0) return [];
      const heads = await engine.heads(tokens.map(({ id }) => refOf(id)));
      return tokens.map(({ id, fence }, at) => {
        const head = heads[at];
        const isHeld = head?.state === 'running' && head.fence === fence;
        if (!isHeld) holds.forget(id, fence);
        const cancelAtMs = isHeld ? head.cancelAtMs : 0;
        return {
          id,
          state: isHeld ? 'held' : 'lost',
          cancelAt: cancelAtMs === 0 ? undefined : new Date(cancelAtMs),
        };
      });
    },
    async workers() {
      const beats = await engine.workers();
      return beats.map(({ worker, aliveUntilMs, about }) => ({
        worker,
        aliveUntil: new Date(aliveUntilMs),
        isAlive: aliveUntilMs > clock.now(),
        about: about === undefined ? undefined : (JSON.parse(about) as unknown),
      }));
    },
    leave: (worker) => engine.forgetWorker(checkWorker(worker)),

    startStep: (...args) => holds.startStep(...args),
    finishStep: (...args) => holds.finishStep(...args),
    failStep: (...args) => holds.failStep(...args),
    progress: (...args) => holds.progress(...args),
    sleep: (...args) => holds.sleep(...args),
    waitForEvent: (...args) => holds.waitForEvent(...args),
    runChildren: (...args) => holds.runChildren(...args),
    complete: (...args) => holds.complete(...args),
    fail: (...args) => holds.fail(...args),
    cancelled: (...args) => holds.cancelled(...args),
    compensated: (...args) => holds.compensated(...args),
    release: (...args) => holds.release(...args),

    types: () => [...types.values()],
    setTypes(next) {
      for (const [name, type] of types) retired.set(name, type);
      types = new Map(next.map((type) => [type.name, type]));
      for (const name of types.keys()) retired.delete(name);
    },

    async [Symbol.asyncDispose]() {
      if (closing.signal.aborted) return;
      closing.abort();
      await Promise.all([exchange.idle(), enqueues.idle()]);
      await engine[Symbol.asyncDispose]();
    },
  };
  insides.set(made, {
    engine,
    clock,
    observer,
    signals,
    subjects,
    decideContext,
    change,
    wakeParent,
  });
  return made;
}

function eitherOf(asked: AbortSignal | undefined, closing: AbortSignal): AbortSignal {
  return asked === undefined ? closing : AbortSignal.any([asked, closing]);
}

function leaseOf(leaseMs: number = limits.leaseMsDefault): number {
  return wholeNumber('leaseMs', leaseMs, { min: limits.leaseMsMin, max: limits.durationMsMax });
}

function onlyChange({ head, fields, signals }: Decision): Decision {
  return { head, fields, signals };
}

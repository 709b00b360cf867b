// Tasks over an engine: checks at the edge, decisions, and the batches in which they go.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { createSubjects, type Subjects } from '../contracts/subjects.ts';
import { safeObserver } from '../subscriptions/safe-observer.ts';
import { bulkTasks } from './bulk-tasks.ts';
import { checkName, checkWorker, encodeValue, refOf, toFilter, wholeNumber } from './check-task.ts';
import { claimRequest, leaseOf } from './claim-request.ts';
import { decideCancel } from './decide-end.ts';
import { decideEvent, decideRetry } from './decide-queued.ts';
import { createGather } from './gather.ts';
import { createKnownTypes } from './known-types.ts';
import { prepareTask } from './prepare-task.ts';
import { createTaskChanges } from './task-changes.ts';
import type { DecideContext } from './task-decision.ts';
import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from './task-engine.ts';
import { createTaskExchange } from './task-exchange.ts';
import { createTaskHolds } from './task-holds.ts';
import { isTerminal } from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { toTask } from './task-record.ts';
import { createSignals } from './task-signal.ts';
import { timelineOf } from './task-timeline.ts';
import type { TaskType } from './task-type.ts';
import { keepInside } from './tasks-inside.ts';
import type { Enqueued, NewTask, Tasks } from './tasks.ts';

export interface TasksOptions {
  /** Those that are taken; `setTypes` changes them while it runs. */
  readonly types?: readonly TaskType[] | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** Root of the subjects. Default: `gbe`. */
  readonly root?: string | undefined;
}

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
  const types = createKnownTypes(options.types ?? []);

  const exchange = createTaskExchange(engine, () => clock.now());
  const enqueues = createGather<EnqueueEntry, EnqueueOutcome>(
    (entries) => engine.enqueue(entries, clock.now()),
    { batchMax: limits.enqueueMax },
  );

  function failIfClosed(): void {
    if (closing.signal.aborted) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }

  function decideContext(name: string): DecideContext {
    return { nowMs: clock.now(), type: types.rulesOf(name), signals };
  }

  const { load, change, changeNow, afterEnd, wakeParent } = createTaskChanges({
    engine,
    exchange,
    observer,
    decideContext,
    forget: (id) => holds.forget(id),
  });

  const holds = createTaskHolds({
    engine,
    exchange,
    decideContext,
    afterEnd,
    wakeParent,
    enqueueMany: (tasks) => made.enqueueMany(tasks),
  });

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
        prepareTask(task, { type: types.configured(task.type), ids, nowMs, signals }),
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
    cancelMany: (query, { reason, ...how } = {}) =>
      bulkTasks(engine, query, how, (id) => made.cancel(id, { reason })),
    retryMany: (query, how = {}) => bulkTasks(engine, query, how, (id) => made.retry(id)),

    pause: (type) => engine.setMode(types.configured(type).name, 'paused'),
    drain: (type) => engine.setMode(types.configured(type).name, 'draining'),
    resume: (type) => engine.setMode(types.configured(type).name, 'open'),
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
      const request = claimRequest(asked, { types, nowMs: clock.now() });
      if (request.limit === 0 || request.rules.length === 0) return [];
      const along = await exchange.claimAlong(request);
      const isEnough = along !== undefined && (along.length > 0 || waitMs === 0);
      const claimed = isEnough
        ? along
        : await engine.claim(
            { ...request, nowMs: clock.now() },
            {
              waitMs,
              isBusy: asked.isBusy ?? false,
              signal: eitherOf(asked.signal, closing.signal),
            },
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

    types: () => types.all(),
    setTypes: (next) => types.set(next),

    async [Symbol.asyncDispose]() {
      if (closing.signal.aborted) return;
      closing.abort();
      await Promise.all([exchange.idle(), enqueues.idle()]);
      await engine[Symbol.asyncDispose]();
    },
  };
  keepInside(made, {
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

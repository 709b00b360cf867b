// Tasks over an engine: checks at the edge, decisions, and the batches in which calls reach the engine.

import { batchesOf } from '../foundation/async/batches-of.ts';
import { createBatcher } from '../foundation/async/batcher.ts';
import { aborted, systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds } from '../foundation/ids.ts';
import { parseStored } from '../foundation/parse-json.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { createSubjects, type Subjects } from '../contracts/subjects.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import type { PersonalData } from '../store/personal-data.ts';
import {
  checkName,
  checkWorker,
  encodeValue,
  refOf,
  toFilter,
  checkInteger,
} from './rules/check-task.ts';
import { decideCancel, decideDamaged, decideErased } from './rules/decide-end.ts';
import { decideEvent, decideRetry } from './rules/decide-queued.ts';
import { claimRequest, leaseOf, prepareTask } from './rules/prepare-task.ts';
import { createTaskChanges, createChangeBatcher } from './task-changes.ts';
import { withRoom, type DecideContext, type Decision } from './rules/task-decision.ts';
import type { EnqueueEntry, EnqueueOutcome, TaskEngine } from './task-engine.ts';
import { createClaimedJobs, createClaimedJobCalls } from './claimed-jobs.ts';
import { isErased, personalJobs } from './personal-jobs.ts';
import type { StoredTask } from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { readTask, timelineOf, toTask, type TaskFailure } from './task-record.ts';
import { createSignals } from './task-signal.ts';
import { createKnownTypes, type TaskType } from './task-type.ts';
import type {
  BulkOptions,
  BulkOutcome,
  ClaimOptions,
  ClaimedTask,
  Enqueued,
  HeartbeatRequest,
  ClaimState,
  NewTask,
  TaskQuery,
  Tasks,
} from './tasks.ts';

export interface TasksOptions {
  /** The types of accepted jobs; `setTypes` replaces them at run time. */
  readonly types?: readonly TaskType[] | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** Root of the subjects. Default: `gbe`. */
  readonly root?: string | undefined;
  /** Encrypts jobs with the label `dataSubject`: `personalData` of an event store. */
  readonly personalData?: PersonalData | undefined;
}

/**
 * Tasks over an engine: `tasks` of a handle, or your own engine.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createTasks, taskType } from 'millrace/tasks';
 *
 * await using tasks = createTasks(openMemory().tasks, { types: [taskType('email-send', { workers: 4 })] });
 * await tasks.enqueue({ type: 'email-send', payload: { to: 'c-1' } });
 */
export function createTasks(stored: TaskEngine, options: TasksOptions = {}): Tasks {
  const { clock = systemClock } = options;
  const personal = personalJobs(stored, options.personalData);
  const { engine } = personal;
  const observer = safeObserver(options.observer ?? silentObserver);
  const ids = createIds({ clock });
  const subjects: Subjects<string> = createSubjects<string>({ root: options.root });
  const signals = createSignals(subjects);
  const types = createKnownTypes(options.types ?? []);
  const closing = new AbortController();

  const changeBatcher = createChangeBatcher(engine, () => clock.now());
  const enqueues = createBatcher<EnqueueEntry, EnqueueOutcome>(
    (entries) => engine.enqueue(entries, clock.now()),
    { batchMax: limits.enqueueMax },
  );

  function decideContext(name: string): DecideContext {
    return { nowMs: clock.now(), type: types.rulesOf(name), signals };
  }

  function failIfClosed(): void {
    if (closing.signal.aborted) throw new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }

  function orClosing(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
  }

  async function enqueueMany(tasks: readonly NewTask[]): Promise<readonly Enqueued[]> {
    checkInteger('tasks', tasks.length, { min: 0, max: limits.enqueueMax });
    failIfClosed();
    const nowMs = clock.now();
    const entries = await personal.seal(
      tasks.map((task) =>
        prepareTask(task, { type: types.configured(task.type), ids, nowMs, signals }),
      ),
    );
    const outcomes = await Promise.all(entries.map((entry) => enqueues.add(entry)));
    return entries.map(({ head }, at): Enqueued => {
      const outcome = outcomes[at];
      const { type } = head;
      if (outcome?.kind === 'draining') {
        observer.count?.('tasks_rejected_total', { type });
        const message = `task type '${type}' is draining and accepts no new jobs`;
        throw new MillraceError('TASK_TYPE_DRAINING', message, { details: { type } });
      }
      const isDuplicate = outcome?.kind === 'exists';
      if (isDuplicate) observer.count?.('tasks_duplicates_total', { type });
      else observer.count?.('tasks_enqueued_total', { type });
      return { id: outcome?.kind === 'exists' ? outcome.id : head.id, isDuplicate };
    });
  }

  const claimedJobs = createClaimedJobs();
  const changes = createTaskChanges({
    engine,
    changeBatcher,
    clock,
    observer,
    decideContext,
    evict: (id) => claimedJobs.evict(id),
  });
  const { change, changeNow, afterEnd, wakeParent, load } = changes;
  const jobCalls = createClaimedJobCalls({
    engine,
    changeBatcher,
    claimedJobs,
    decideContext,
    enqueueMany,
    afterEnd,
    wakeParent,
  });

  const cancel: Tasks['cancel'] = (id, { reason = 'cancelled', deadlineMs } = {}) =>
    changeNow(id, (task, decide) => {
      const cancelling = { reason, deadlineMs: deadlineMs ?? decide.type.cancelDeadlineMs };
      return decideCancel(task, cancelling, decide);
    });

  const retry: Tasks['retry'] = async (id, { fromStep } = {}) => {
    if (fromStep !== undefined) checkName('fromStep', fromStep);
    return changeNow(id, (task, decide) => decideRetry(task, { fromStep }, decide));
  };

  async function claim(claimOptions: ClaimOptions): Promise<readonly ClaimedTask[]> {
    failIfClosed();
    const waitMs = checkInteger('waitMs', claimOptions.waitMs ?? limits.claimWaitMsDefault, {
      min: 0,
      max: limits.waitMsMax,
    });
    const request = claimRequest(claimOptions, { types, nowMs: clock.now() });
    if (request.limit === 0 || request.rules.length === 0) return [];
    const { aroundClaim = (search) => search() } = claimOptions;
    const along = await aroundClaim(() => changeBatcher.claimAlong(request));
    const isEnough = along !== undefined && (along.length > 0 || waitMs === 0);
    const claimed = isEnough
      ? along
      : await engine.claim(
          { ...request, nowMs: clock.now() },
          { waitMs, signal: orClosing(claimOptions.signal), aroundClaim },
        );
    const erased = claimed.filter(isErased);
    const remaining = erased.length === 0 ? claimed : claimed.filter((task) => !isErased(task));
    const read = remaining.map((record) => ({ record, ...readTask(record) }));
    await Promise.all([
      ...erased.map((task) => endClaimed(task, decideErased)),
      ...read.flatMap(({ record, damage }) =>
        damage === undefined ? [] : [failDamaged(record, damage)],
      ),
    ]);
    return read.flatMap(({ record, task, damage }) => {
      if (damage !== undefined) return [];
      claimedJobs.remember(record);
      const { id, fence, type, dueAtMs, claimedAtMs } = record.head;
      const lateMs = Math.max(0, claimedAtMs - dueAtMs);
      observer.record?.('task_start_delay_ms', lateMs, { type });
      return [{ token: { id, fence }, task }];
    });
  }

  function failDamaged(task: StoredTask, damage: TaskFailure): Promise<void> {
    const { id: taskId, type } = task.head;
    observer.log?.error({ taskId, type, reason: damage.message }, 'damaged job failed');
    return endClaimed(task, (each, decide) => decideDamaged(each, damage, decide));
  }

  /** Ends a job that no handler may run. If that fails, the job is lost with this claim, and the next claim ends it. */
  async function endClaimed(
    task: StoredTask,
    decide: (task: StoredTask, context: DecideContext) => Decision,
  ): Promise<void> {
    try {
      await change(task, decide);
    } catch (err) {
      observer.log?.warn({ taskId: task.head.id, err }, 'job that cannot run was not ended');
    }
  }

  async function heartbeat(request: HeartbeatRequest): Promise<readonly ClaimState[]> {
    const { worker, leaseMs, tokens = [], about } = request;
    checkWorker(worker);
    const aliveUntilMs = clock.now() + leaseOf(leaseMs);
    const text = about === undefined ? undefined : encodeValue('about', about);
    await engine.beat({ worker, aliveUntilMs, about: text });
    if (tokens.length === 0) return [];
    const heads = await engine.heads(tokens.map(({ id }) => refOf(id)));
    return tokens.map(({ id, fence }, at) => {
      const head = heads[at];
      const isClaimed = head?.state === 'running' && head.fence === fence;
      if (!isClaimed) claimedJobs.evict(id, fence);
      const cancelAtMs = isClaimed ? head.cancelAtMs : 0;
      return {
        id,
        state: isClaimed ? 'claimed' : 'lost',
        cancelAt: cancelAtMs === 0 ? undefined : new Date(cancelAtMs),
      };
    });
  }

  return {
    capabilities: engine.capabilities,
    core: { engine, clock, observer, signals, subjects, decideContext, change, wakeParent },

    async enqueue(task) {
      const [enqueued] = await enqueueMany([task]);
      return enqueued as Enqueued;
    },
    enqueueMany,

    async get(id) {
      failIfClosed();
      const [task] = await engine.get([refOf(id)]);
      return task === undefined ? undefined : toTask(task);
    },
    async list(query = {}, { cursor, limit = limits.pageDefault, bytesMax } = {}) {
      failIfClosed();
      checkInteger('limit', limit, { min: 1, max: limits.pageMax });
      const page = await engine.list(toFilter(query), { cursor, limit, bytesMax });
      return { tasks: page.tasks.map(toTask), cursor: page.cursor };
    },
    counts: () => engine.counts(),
    timeline: async (id) => timelineOf(await load(id)),
    whenEnded: async (id, { timeoutMs, signal, aroundLoad } = {}) =>
      toTask(await changes.whenEnded(id, { timeoutMs, signal: orClosing(signal), aroundLoad })),

    cancel,
    retry,
    async sendEvent(id, { name, payload = null, eventId = ids.next() }) {
      checkName('name', name);
      checkName('eventId', eventId);
      encodeValue('payload', payload);
      return changeNow(id, (task, decide) => {
        const decided = decideEvent(task, { name, id: eventId, payload }, decide);
        return decided === undefined ? undefined : withRoom(task, decided);
      });
    },
    cancelMany: (query, { reason, ...how } = {}) =>
      changeMany(engine, query, how, (id) => cancel(id, { reason })),
    retryMany: (query, { exceptType, ...how } = {}) =>
      changeMany(engine, query, how, async (id) => refOf(id).type !== exceptType && retry(id)),

    pause: (type) => engine.setMode(types.configured(type).name, 'paused'),
    drain: (type) => engine.setMode(types.configured(type).name, 'draining'),
    resume: (type) => engine.setMode(types.configured(type).name, 'open'),
    async modes() {
      const modes = await engine.modes();
      return Object.fromEntries(modes.map(({ type, mode }) => [type, mode]));
    },

    claim,
    heartbeat,
    async workers() {
      const beats = await engine.workers();
      return beats.map(({ worker, aliveUntilMs, about }) => ({
        worker,
        aliveUntil: new Date(aliveUntilMs),
        isAlive: aliveUntilMs > clock.now(),
        about: about === undefined ? undefined : parseStored(about),
      }));
    },
    leave: (worker) => engine.forgetWorker(checkWorker(worker)),

    ...jobCalls,

    types: () => types.all(),
    setTypes: (next) => types.set(next),

    async [Symbol.asyncDispose]() {
      if (closing.signal.aborted) return;
      closing.abort();
      await Promise.all([changeBatcher.idle(), enqueues.idle()]);
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** One change for all jobs of a query, page by page. After an abort, the same call changes the remaining jobs. */
async function changeMany(
  engine: Pick<TaskEngine, 'list' | 'counts'>,
  query: TaskQuery,
  { onProgress, signal }: BulkOptions,
  changeOne: (id: string) => Promise<boolean>,
): Promise<BulkOutcome> {
  const filter = toFilter(query);
  const matching = onProgress === undefined ? undefined : await countMatching(engine, query);
  const total = { changed: 0, skipped: 0 };
  for (let cursor: string | undefined; ;) {
    if (signal?.aborted === true) throw aborted(signal);
    const page = await engine.list(filter, {
      cursor,
      limit: limits.batchMax,
      bytesMax: limits.pageBytesMax,
    });
    for (const some of batchesOf(page.tasks, { countMax: limits.wholeJobsMax })) {
      for (const isChanged of await Promise.all(some.map(({ head }) => changeOne(head.id)))) {
        if (isChanged) total.changed += 1;
        else total.skipped += 1;
      }
    }
    onProgress?.({ ...total, matching });
    if (page.cursor === undefined) return total;
    cursor = page.cursor;
  }
}

/** From the counts that engines keep anyway; undefined if the query filters by more than type and state. */
async function countMatching(
  engine: Pick<TaskEngine, 'counts'>,
  { type, state, ...more }: TaskQuery,
): Promise<number | undefined> {
  if (Object.values(more).some((value) => value !== undefined)) return undefined;
  const states = typeof state === 'string' ? [state] : state;
  let sum = 0;
  for (const counted of await engine.counts()) {
    if (type !== undefined && counted.type !== type) continue;
    for (const [name, count] of Object.entries(counted.states)) {
      if (states === undefined || states.some((wanted) => wanted === name)) sum += count;
    }
  }
  return sum;
}

// One run of a handler over a claimed job: completed steps return their stored results, the first new step runs, and a
// wait releases the worker.

import { AsyncLocalStorage } from 'node:async_hooks';
import { applySchema } from '../../contracts/apply-schema.ts';
import type { Clock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { errorFacts } from '../../foundation/failure-cause.ts';
import type { Observer } from '../../foundation/observer.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import { outcomeOf } from '../../foundation/handler-outcome.ts';
import type { Duration } from '../../foundation/duration.ts';
import { durationMs } from '../rules/check-task.ts';
import { undoName } from '../rules/decide-end.ts';
import { taskLimits as limits } from '../task-limits.ts';
import type { TaskFailure } from '../task-record.ts';
import type { StepOptions, StepScope, TaskContext, TaskDefinition } from '../task-definition.ts';
import type { ChildOutcome, ClaimedTask, StepStart, Tasks } from '../tasks.ts';

export interface RunTaskOptions {
  readonly tasks: Tasks;
  readonly definition: TaskDefinition;
  readonly claimed: ClaimedTask;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly stepTimeoutMs: number;
  /** False: the lease may have expired, so another worker may have taken the job and completed steps of it. */
  readonly isLeaseCurrent: () => boolean;
  /** Fires with `TASK_CANCELLED`, with `TASK_STALE` (another worker has the job), or when the worker stops. */
  readonly signal: AbortSignal;
  /** The handler has returned and its outcome is being stored: the next job may be claimed. */
  readonly onSettling?: (() => void) | undefined;
}

/** `gone`: another worker has the job. `kept`: the worker is stopping and releases the job. */
export type RunOutcome = 'completed' | 'failed' | 'released' | 'cancelled' | 'gone' | 'kept';

/** The step and run of the caller: a wait inside a step would never end, because it waits for that step. */
const within = new AsyncLocalStorage<{ readonly run: object; readonly step: string }>();

export async function runTask(options: RunTaskOptions): Promise<RunOutcome> {
  const { tasks, definition, claimed, clock, observer, signal } = options;
  const { token, task } = claimed;
  const inFlight = new Set<Promise<unknown>>();
  const undo = new Map<string, () => void | Promise<void>>();
  const halted = Promise.withResolvers<'halted'>();
  const used = new Map<string, number>();
  const steps = new Map(task.steps.map((step) => [step.name, step]));
  const isUndoing = task.endsAs !== undefined;
  let onBeat: () => void = () => undefined;
  let isHalted = false;

  /** The handler never continues from here; the job continues in another run. */
  function halt(): Promise<never> {
    isHalted = true;
    halted.resolve('halted');
    return new Promise<never>(() => undefined);
  }

  /** A second step with the same name is a separate step. */
  function nameOf(base: string): string {
    const count = (used.get(base) ?? 0) + 1;
    used.set(base, count);
    return count === 1 ? base : `${base}#${count}`;
  }

  function failInsideStep(what: string): void {
    const caller = within.getStore();
    if (caller?.run !== inFlight) return;
    const message = `${what} was called inside of step ${caller.step}; it is only allowed between steps`;
    throw new MillraceError('TASK_INVALID', message, { details: { step: caller.step, what } });
  }

  function track<T>(step: Promise<T>): Promise<T> {
    const tracked = step.catch(() => undefined).finally(() => inFlight.delete(tracked));
    inFlight.add(tracked);
    return step;
  }
  async function othersDone(): Promise<void> {
    while (inFlight.size > 0) await Promise.all(inFlight);
  }

  /** Repeats the call while the engine is unavailable, unless another worker has the job. */
  async function retryWhileUnavailable<T>(call: () => Promise<T>): Promise<T> {
    for (
      let waitMs: number = limits.retryMsFirst;
      ;
      waitMs = Math.min(waitMs * 2, limits.retryMsMax)
    ) {
      try {
        return await call();
      } catch (error) {
        if (!hasCode(error, 'TASKS_UNAVAILABLE') || isLost(signal)) throw error;
        await clock.sleep(waitMs);
      }
    }
  }

  async function work<Result>(
    name: string,
    kind: NonNullable<StepStart['kind']>,
    run: (scope: StepScope) => Result | Promise<Result>,
    stepOptions: StepOptions<Result>,
  ): Promise<Result> {
    if (signal.aborted) throw reasonOf(signal);
    const timeoutMs =
      stepOptions.timeout === undefined
        ? options.stepTimeoutMs
        : durationMs('timeout', stepOptions.timeout);
    const heartbeatMs =
      stepOptions.heartbeat === undefined
        ? undefined
        : durationMs('heartbeat', stepOptions.heartbeat);
    const span = observer.span?.('task step', { type: task.type, step: name }, task.trace);
    const start = (): Promise<void> => tasks.startStep(token, { name, kind, timeoutMs });
    let value: Result;
    try {
      // Not awaited under a current lease: the engine stores the start before the next call of this step, mostly
      // together with it. After the lease, the step runs only once the engine has confirmed the fence.
      if (options.isLeaseCurrent()) start().catch(() => undefined);
      else await retryWhileUnavailable(start);
    } catch (error) {
      span?.fail(error);
      span?.end();
      throw error;
    }
    try {
      const inside = (scope: StepScope) =>
        within.run({ run: inFlight, step: name }, () => run(scope));
      value = await runWithin(inside, {
        clock,
        signal,
        timeoutMs,
        heartbeatMs,
        name,
        onBeat: (beat) => (onBeat = beat),
      });
    } catch (error) {
      span?.fail(error);
      span?.end();
      return fail(name, kind, error, stepOptions);
    }
    // The handler gets the value that a later run reads from the record.
    const text = JSON.stringify(value) as string | undefined;
    const result = (text === undefined ? undefined : JSON.parse(text)) as Result;
    const isCompensable = stepOptions.compensate !== undefined;
    await retryWhileUnavailable(() =>
      tasks.finishStep(token, { name, kind, result, isCompensable }),
    );
    span?.end();
    return result;
  }

  async function fail<Result>(
    name: string,
    kind: NonNullable<StepStart['kind']>,
    error: unknown,
    { retries = 0 }: StepOptions<Result>,
  ): Promise<never> {
    if (signal.aborted) throw reasonOf(signal);
    const outcome = outcomeOf(error);
    const isSnoozed = outcome.kind === 'snooze';
    const { isRetried } = await retryWhileUnavailable(() =>
      tasks.failStep(token, {
        name,
        kind,
        failure: failureOf(error),
        retries: isSnoozed ? limits.retriesMax : retries,
        retryAfterMs: 'ms' in outcome ? outcome.ms : undefined,
      }),
    );
    if (isRetried) return halt();
    throw error;
  }

  async function children(
    tasksOf: Parameters<TaskContext['all']>[0],
    { what, base }: { readonly what: string; readonly base: string },
  ): Promise<readonly ChildOutcome[]> {
    failInsideStep(what);
    const name = nameOf(base);
    const record = steps.get(name);
    if (record?.state === 'completed') return record.result as readonly ChildOutcome[];
    if (isUndoing || isHalted) return halt();
    await othersDone();
    const caused = context.caused;
    const wait = { name, tasks: tasksOf.map((child) => ({ ...caused, ...child })) };
    const outcome = await retryWhileUnavailable(() => tasks.runChildren(token, wait));
    return outcome.kind === 'ended' ? outcome.children : halt();
  }

  const context: TaskContext = {
    taskId: task.id,
    type: task.type,
    tenant: task.tenant,
    payload: task.payload,
    attempt: task.attempt,
    signal,
    caused: {
      correlationId: task.correlationId ?? task.id,
      causationId: task.id,
      trace: task.trace,
    },
    async step<Result>(
      base: string,
      run: (scope: StepScope) => Result | Promise<Result>,
      stepOptions: StepOptions<Result> = {},
    ): Promise<Result> {
      const name = nameOf(base);
      const record = steps.get(name);
      const { compensate: undoing } = stepOptions;
      const remember = (result: Result): Result => {
        if (undoing !== undefined) undo.set(name, () => undoing(result));
        return result;
      };
      if (record?.state === 'completed') return remember(record.result as Result);
      if (isUndoing || isHalted) return halt();
      if (record?.isFinal === true) throw errorOf(record.error);
      return remember(await track(work(name, 'step', run, stepOptions)));
    },
    async sleep(duration, { name: base = 'sleep' } = {}) {
      failInsideStep('ctx.sleep');
      const name = nameOf(base);
      const record = steps.get(name);
      const ms = durationMs('duration', duration);
      const untilMs = record?.until?.getTime() ?? clock.now() + ms;
      if (record !== undefined && untilMs <= clock.now()) return;
      if (isUndoing || isHalted) await halt();
      await othersDone();
      await retryWhileUnavailable(() => tasks.sleep(token, { name, until: new Date(untilMs) }));
      await halt();
    },
    async waitForEvent<Event>(
      event: string,
      how: { readonly timeout?: Duration | undefined; readonly name?: string | undefined } = {},
    ): Promise<Event | undefined> {
      failInsideStep('ctx.waitForEvent');
      const name = nameOf(how.name ?? event);
      const record = steps.get(name);
      const timeoutMs = how.timeout === undefined ? undefined : durationMs('timeout', how.timeout);
      let outcome = record?.state === 'completed' ? record.result : undefined;
      if (outcome === undefined) {
        if (isUndoing || isHalted) return halt();
        await othersDone();
        outcome = await retryWhileUnavailable(() =>
          tasks.waitForEvent(token, { name, event, timeoutMs }),
        );
      }
      const { kind, payload } = outcome as { readonly kind: string; readonly payload?: unknown };
      return kind === 'released' ? halt() : (payload as Event | undefined);
    },
    async run<Result>(
      child: Parameters<TaskContext['run']>[0],
      { name = child.type }: { readonly name?: string | undefined } = {},
    ): Promise<Result> {
      const [ended] = await children([child], { what: 'ctx.run', base: name });
      if (ended?.state === 'completed') return ended.result as Result;
      const message = `child ${ended?.id} ${ended?.state}: ${ended?.error?.message ?? ''}`;
      throw new MillraceError('TASK_CHILD_FAILED', message, { details: { id: ended?.id } });
    },
    all: (list, { name = 'children' } = {}) => children(list, { what: 'ctx.all', base: name }),
    async progress(percent, message) {
      onBeat();
      await retryWhileUnavailable(() => tasks.progress(token, { percent, message }));
    },
  };

  async function handle(): Promise<unknown> {
    const { schema, handler, name } = definition;
    if (schema === undefined) return handler(context);
    const payload = applySchema(name, schema, task.payload);
    return handler({ ...context, payload });
  }

  /** Runs the compensations in reverse order. Each is a step, so a crash does not repeat completed ones. */
  async function compensate(): Promise<RunOutcome> {
    await Promise.race([handle().catch(() => undefined), halted.promise]);
    for (const step of task.steps.toReversed()) {
      const name = undoName(step.name);
      if (!step.isCompensable || step.state !== 'completed') continue;
      if (steps.get(name)?.state === 'completed') continue;
      const run = undo.get(step.name);
      if (run === undefined) {
        const message = `the handler no longer has a compensation for step ${step.name}`;
        throw new MillraceError('TASK_INVALID', message);
      }
      await work(name, 'compensation', async () => run(), {});
    }
    await retryWhileUnavailable(() => tasks.compensated(token));
    return 'failed';
  }

  async function forward(): Promise<RunOutcome> {
    const ended = await Promise.race([handle().then((value) => ({ value })), halted.promise]);
    if (ended === 'halted') return 'released';
    await othersDone();
    if (isHalted) return 'released';
    if (signal.aborted) throw reasonOf(signal);
    const completed = retryWhileUnavailable(() => tasks.complete(token, ended.value));
    options.onSettling?.();
    await completed;
    return 'completed';
  }

  try {
    return isUndoing ? await compensate() : await forward();
  } catch (error) {
    await othersDone();
    if (isHalted) return 'released';
    return settleFailure(error, { ...options, retryWhileUnavailable });
  }
}

async function settleFailure(
  error: unknown,
  {
    tasks,
    claimed: { token, task },
    signal,
    clock,
    observer,
    retryWhileUnavailable,
  }: RunTaskOptions & { readonly retryWhileUnavailable: <T>(call: () => Promise<T>) => Promise<T> },
): Promise<RunOutcome> {
  if (hasCode(error, 'TASK_STALE') || isLost(signal)) return 'gone';
  try {
    if (signal.aborted) {
      if (!hasCode(signal.reason, 'TASK_CANCELLED')) return 'kept';
      await retryWhileUnavailable(() => tasks.cancelled(token));
      return 'cancelled';
    }
    const outcome = outcomeOf(error);
    if (outcome.kind === 'snooze') {
      const until = new Date(clock.now() + outcome.ms);
      await retryWhileUnavailable(() =>
        tasks.sleep(token, { name: `snooze:${token.fence}`, until }),
      );
      return 'released';
    }
    const { id: taskId, type, tenant, correlationId, attempt } = task;
    observer.log?.warn(
      { taskId, type, tenant, correlationId, attempt, err: error },
      'task attempt failed',
    );
    const retryAfterMs = 'ms' in outcome ? outcome.ms : undefined;
    await retryWhileUnavailable(() => tasks.fail(token, failureOf(error), { retryAfterMs }));
    return 'failed';
  } catch (settling) {
    if (hasCode(settling, 'TASK_STALE') || isLost(signal)) return 'gone';
    throw settling;
  }
}

const isLost = (signal: AbortSignal): boolean => hasCode(signal.reason, 'TASK_STALE');

function reasonOf(signal: AbortSignal): unknown {
  return signal.reason instanceof Error ? signal.reason : new MillraceError('ABORTED', 'stopped');
}

const noRetryHelps = new Set([
  'PAYLOAD_INVALID',
  'PAYLOAD_NOT_JSON',
  'PAYLOAD_TOO_LARGE',
  'TASK_INVALID',
]);

function failureOf(error: unknown): TaskFailure {
  const message = error instanceof Error ? error.message : String(error);
  const facts = errorFacts(error);
  const { code } = facts;
  const isTerminal =
    outcomeOf(error).kind === 'terminal' || (code !== undefined && noRetryHelps.has(code));
  return { message, ...facts, isTerminal };
}

/** The error of an earlier run, as far as it is stored. */
function errorOf(failure: TaskFailure | undefined): Error {
  const { message = 'the step failed', code, name = 'Error', stack = '' } = failure ?? {};
  const error = Object.assign(new Error(message), { code, name });
  return Object.assign(error, { stack: `${name}: ${message}\n${stack}` });
}

interface StepLimits {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly heartbeatMs: number | undefined;
  readonly name: string;
  /** Receives the heartbeat function, because reporting progress is a heartbeat, too. */
  readonly onBeat: (beat: () => void) => void;
}

/** Runs a step within its time limit. When the limit expires, the signal of the step fires and the step is not awaited. */
async function runWithin<Result>(
  run: (scope: StepScope) => Result | Promise<Result>,
  { clock, signal, timeoutMs, heartbeatMs, name, onBeat }: StepLimits,
): Promise<Result> {
  const over = new AbortController();
  const tooLate = new AbortController();
  const endMs = clock.now() + timeoutMs;
  let beatMs = clock.now();
  const beat = (): void => void (beatMs = clock.now());
  onBeat(beat);

  async function watch(): Promise<never> {
    for (;;) {
      const aliveMs = heartbeatMs === undefined ? endMs : Math.min(endMs, beatMs + heartbeatMs);
      const leftMs = aliveMs - clock.now();
      if (leftMs <= 0) break;
      await clock.sleep(Math.min(leftMs, 2_147_483_647), over.signal);
    }
    const error = new MillraceError('TASK_STEP_TIMEOUT', `step ${name} exceeded its time limit`, {
      details: { name, timeoutMs, heartbeatMs },
    });
    tooLate.abort(error);
    throw error;
  }

  const watching = watch();
  watching.catch(() => undefined);
  using stop = whenAborted(signal);
  const stopped = stop.aborted.then(() => {
    throw signal.reason;
  });
  stopped.catch(() => undefined);
  try {
    const scope = { signal: AbortSignal.any([signal, tooLate.signal]), beat };
    return await Promise.race([run(scope), watching, stopped]);
  } finally {
    over.abort();
  }
}

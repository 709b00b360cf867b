// The workers of a process: claim as many jobs as there is room for, run them, and send heartbeats.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import { startBeatThread } from './beat-thread.ts';
import { invalid } from '../rules/check-task.ts';
import { runTask } from './run-task.ts';
import type { TaskDefinition } from '../task-definition.ts';
import { taskLimits as limits } from '../task-limits.ts';
import type { ClaimedTask, Tasks, TaskToken } from '../tasks.ts';

/** A message of the control channel, as the bus delivers it. */
export interface ControlMessage {
  readonly subject: string;
  readonly payload: unknown;
}

export interface WorkersOptions {
  /** Default: host, process id and a random part. Unique for each start. */
  readonly worker?: string | undefined;
  /** Concurrent jobs, by type. Default: `workers` of the type. */
  readonly concurrency?: Readonly<Record<string, number>> | undefined;
  /** After this time without a heartbeat, other workers get its jobs. Default: 15 s. */
  readonly leaseMs?: number | undefined;
  /** How long a stop waits for running jobs: less than the grace period of the supervisor. Default: 20 s. */
  readonly drainMs?: number | undefined;
  /** Sends heartbeats from a separate thread, if the engine supports it. Default: true. */
  readonly beatsFromThread?: boolean | undefined;
  /** Live messages of `gbe.tasks._control.>`: `bus.subscribe`. */
  readonly control?:
    | ((pattern: string, signal: AbortSignal) => Promise<AsyncIterable<ControlMessage>>)
    | undefined;
}

export interface TaskWorkers extends AsyncDisposable {
  readonly worker: string;
  /** The number of running jobs. */
  readonly running: number;
  /** Resolves when the workers have stopped, by `stop` or by the control channel. */
  readonly done: Promise<void>;
  /** Claims no more jobs, waits up to `drainMs` for running ones, releases the rest, and deregisters. */
  stop(): Promise<void>;
}

interface Run {
  readonly claimed: ClaimedTask;
  readonly stopping: AbortController;
  done: Promise<void>;
  /** The time of the last request in which the engine confirmed that this worker has the job. */
  confirmedAtMs: number;
  /** The handler has returned; its outcome is not stored yet. */
  isSettling: boolean;
}

/** Claims jobs, one call after the other. */
interface Claimer {
  /** Fires when there is more room than the running call knows of. */
  waiting: AbortController;
  /** The jobs that the running call may return. */
  asks: Readonly<Record<string, number>>;
}

/**
 * Runs jobs of the given definitions until it is stopped.
 *
 * @example
 * import { startWorkers, task, type Tasks } from 'millrace/tasks';
 *
 * const emailSend = task('email-send', async (ctx) => {
 *   await ctx.step('send', async () => console.log('to', ctx.payload));
 * });
 * const work = (tasks: Tasks) => startWorkers(tasks, [emailSend], { drainMs: 10_000 });
 */
export function startWorkers(
  tasks: Tasks,
  // oxlint-disable-next-line typescript/no-explicit-any -- definitions of any payload, as their schemas check it
  definitions: readonly TaskDefinition<any>[],
  options: WorkersOptions = {},
): TaskWorkers {
  const { clock, observer, engine, signals, subjects, decideContext } = tasks.core;
  const { leaseMs = limits.leaseMsDefault, drainMs = 20_000, beatsFromThread = true } = options;
  const worker = options.worker ?? `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  if (byName.size < definitions.length) throw invalid('definitions', 'must not name a type twice');
  const runs = new Map<string, Run>();
  const stopping = new AbortController();
  const startedAt = new Date(clock.now()).toISOString();
  const concurrency: Record<string, number> = { ...options.concurrency };
  /** The first claimer waits for jobs; the others claim in addition while there is a backlog. */
  const claimers = Array.from({ length: engine.callsAtOnce ?? 1 }, createClaimer);
  let isPlenty = false;
  /** The turn of the event loop in which a claimer has started its jobs. */
  let turn: Promise<void> | undefined;

  const about = (): object => ({
    host: hostname(),
    pid: process.pid,
    startedAt,
    types: [...byName.keys()],
    running: runs.size,
  });
  const thread =
    beatsFromThread && engine.beatThread !== undefined
      ? startBeatThread(
          {
            thread: engine.beatThread,
            worker,
            leaseMs,
            everyMs: Math.ceil(leaseMs / 3),
            about: JSON.stringify(about()),
          },
          observer,
        )
      : undefined;

  /** Room for more jobs of each type, in addition to running claims. */
  function room(): Record<string, number> {
    const free: Record<string, number> = {};
    const running = new Map<string, number>();
    const settling = new Map<string, number>();
    for (const { claimed, isSettling } of runs.values()) {
      const counts = isSettling ? settling : running;
      counts.set(claimed.task.type, (counts.get(claimed.task.type) ?? 0) + 1);
    }
    for (const { name, workers } of tasks.types()) {
      const most = concurrency[name] ?? workers;
      // Outcomes are stored before the claim, so settling jobs do not count, up to the limit of running jobs.
      const over = Math.max(0, (settling.get(name) ?? 0) - most);
      const requested = claimers.reduce((sum, { asks }) => sum + (asks[name] ?? 0), 0);
      const left = byName.has(name) ? most - (running.get(name) ?? 0) - over - requested : 0;
      // In a backlog each claimer takes a part: while one part runs, the next one is claimed.
      const part = isPlenty ? Math.ceil(most / claimers.length) : most;
      if (left > 0) free[name] = Math.min(left, part, limits.batchMax);
    }
    return free;
  }

  function begin(claimed: ClaimedTask): void {
    const { task, token } = claimed;
    const definition = byName.get(task.type);
    if (definition === undefined) return;
    const halting = new AbortController();
    const run: Run = {
      claimed,
      stopping: halting,
      done: Promise.resolve(),
      confirmedAtMs: task.claimedAt?.getTime() ?? clock.now(),
      isSettling: false,
    };
    runs.set(nameOf(token), run);
    const span = observer.span?.(
      'run task',
      { type: task.type, taskId: task.id, tenant: task.tenant, attempt: task.attempt },
      task.trace,
    );
    const trace = span?.context;
    const beganMs = clock.now();
    const { stepTimeoutMs } = decideContext(task.type).type;
    const running = runTask({
      tasks,
      definition,
      claimed: trace === undefined ? claimed : { token, task: { ...task, trace } },
      clock,
      observer,
      stepTimeoutMs,
      isLeaseCurrent: () => clock.now() < run.confirmedAtMs + leaseMs,
      signal: halting.signal,
      onSettling() {
        run.isSettling = true;
        nudge();
      },
    }).catch((err: unknown) => {
      // The outcome could not be stored: the sweeper finds the job by its worker or its deadline.
      observer.log?.error({ taskId: task.id, type: task.type, err }, 'job could not be settled');
      return 'gone' as const;
    });
    run.done = (async () => {
      const outcome = await running;
      const attributes = { type: task.type, outcome };
      observer.record?.('task_run_duration_ms', clock.now() - beganMs, attributes);
      span?.set({ outcome });
      span?.end();
      // A job that `stop` releases stays in the list until it is released.
      if (outcome !== 'kept') runs.delete(nameOf(token));
      nudge();
    })();
  }

  /**
   * Of two claims that return together, the second starts its jobs in the next turn: they run while the engine
   * stores the outcomes of the first. Otherwise process and engine would always wait for each other.
   */
  async function beginAll(found: readonly ClaimedTask[]): Promise<void> {
    while (turn !== undefined) await turn;
    if (found.length > 1 && claimers.length > 1) {
      turn = new Promise((resolve) =>
        setImmediate(() => {
          turn = undefined;
          resolve();
        }),
      );
    }
    for (const claimed of found) begin(claimed);
  }

  /** Ends waiting claims, because there is more room now. */
  function nudge(): void {
    // If many jobs end at once, only the first one finds a claim to wake.
    for (const { waiting } of claimers) if (!waiting.signal.aborted) waiting.abort(nudged);
  }

  async function claimOnce(claimer: Claimer): Promise<void> {
    claimer.waiting = new AbortController();
    const isFirst = claimer === claimers[0];
    // `stop` also aborts this signal: combining two signals per claim would cost more than a short job.
    const { signal } = claimer.waiting;
    const types = isFirst || isPlenty ? room() : {};
    const wanted = Object.values(types).reduce((sum, count) => sum + count, 0);
    if (wanted === 0) return whenAborted(signal).aborted;
    claimer.asks = types;
    const waitMs = isFirst ? limits.claimWaitMsDefault : 0;
    let isFull = false;
    try {
      const isBusy = runs.size > 0;
      const found = await tasks.claim({ worker, types, leaseMs, waitMs, isBusy, signal });
      isFull = found.length >= Math.min(wanted, limits.batchMax);
      await beginAll(found);
    } finally {
      claimer.asks = {};
      const isNews = !isFull || !isPlenty;
      isPlenty = isFull;
      // The other claimers may claim what this one did not get, or their parts of a backlog.
      if (isNews) nudge();
    }
  }

  async function claimLoop(claimer: Claimer): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        await claimOnce(claimer);
        if (failures > 0) observer.log?.info({ worker }, 'task workers resumed');
        failures = 0;
      } catch (err) {
        if (hasCode(err, 'ABORTED')) continue;
        if (hasCode(err, 'TASKS_CLOSED')) return;
        // The first claimer waits until the engine is available, and logs it.
        if (claimer !== claimers[0]) continue;
        failures += 1;
        if (failures === 1) observer.log?.warn({ worker, err }, 'task workers lost their engine');
        const waitMs = Math.min(limits.retryMsFirst * 2 ** failures, limits.retryMsMax);
        await clock.sleep(waitMs, stopping.signal).catch(() => undefined);
      }
    }
  }

  async function beatLoop(over: AbortSignal): Promise<void> {
    const everyMs = Math.min(Math.ceil(leaseMs / 3), 1_000);
    while (!over.aborted) {
      try {
        const reported = [...runs.values()];
        const tokens = reported.map(({ claimed }) => claimed.token);
        const sentAtMs = clock.now();
        const states = await tasks.heartbeat({ worker, leaseMs, tokens, about: about() });
        // By position, not by id: a lost job may be running here again, under a newer fence.
        for (const [at, run] of reported.entries()) {
          const { id, state, cancelAt } = states[at] ?? {};
          if (id === undefined) continue;
          if (state === 'lost') run.stopping.abort(lostJob(id));
          else if (cancelAt !== undefined) run.stopping.abort(cancelledJob(id));
          if (state === 'claimed') run.confirmedAtMs = sentAtMs;
        }
      } catch (err) {
        if (hasCode(err, 'TASKS_CLOSED')) return;
        observer.log?.debug({ worker, err }, 'heartbeat failed');
      }
      await clock.sleep(everyMs, over).catch(() => undefined);
    }
  }

  async function listen(over: AbortSignal): Promise<void> {
    const messages = await options.control?.(subjects.tasks.control.all, over);
    if (messages === undefined) return;
    for await (const { subject, payload } of messages) {
      const order = (payload ?? {}) as {
        readonly worker?: string;
        readonly concurrency?: Readonly<Record<string, number>>;
      };
      if (order.worker !== undefined && order.worker !== worker) continue;
      if (subject === subjects.tasks.control.shutdown) void stop();
      if (subject === subjects.tasks.control.rebalance && order.concurrency !== undefined) {
        Object.assign(concurrency, order.concurrency);
        nudge();
      }
    }
  }

  /** Releases jobs that do not end in time: another worker continues after their last completed step. */
  async function drain(): Promise<void> {
    const all = Promise.all([...runs.values()].map(({ done }) => done));
    await withinTime<unknown, unknown>(all, { ms: drainMs, late: () => undefined, clock });
    const left = [...runs.values()];
    for (const run of left)
      run.stopping.abort(new MillraceError('ABORTED', 'the worker is stopping'));
    await Promise.all(
      left.map(async ({ claimed: { token } }) => {
        try {
          await tasks.release(token);
        } catch (err) {
          observer.log?.debug({ taskId: token.id, err }, 'could not release job');
        }
        runs.delete(nameOf(token));
      }),
    );
  }

  const ending = new AbortController();
  const loops = claimers.map(claimLoop);
  const beating = beatLoop(ending.signal);
  const listening = listen(ending.signal).catch((err: unknown) => {
    if (!hasCode(err, 'ABORTED')) {
      observer.log?.warn({ worker, err }, 'control channel unavailable');
    }
  });
  const joined = signals.control('rebalance', `join:${worker}`, { joined: worker, ...about() });
  const announced = engine.repair([joined], clock.now()).catch((err: unknown) => {
    observer.log?.debug({ worker, err }, 'could not announce worker');
  });

  let stopped: Promise<void> | undefined;
  const finished = Promise.withResolvers<void>();
  async function shutDown(): Promise<void> {
    stopping.abort();
    nudge();
    await Promise.all([...loops, announced]);
    await drain();
    ending.abort();
    await Promise.all([beating, listening]);
    await thread?.[Symbol.asyncDispose]();
    try {
      await tasks.leave(worker);
    } catch (err) {
      observer.log?.debug({ worker, err }, 'could not deregister worker');
    }
  }
  function stop(): Promise<void> {
    stopped ??= shutDown();
    finished.resolve(stopped);
    return finished.promise;
  }

  return {
    worker,
    get running() {
      return runs.size;
    },
    done: finished.promise,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function createClaimer(): Claimer {
  return { waiting: new AbortController(), asks: {} };
}

/** One object, because creating an error with its stack costs more than the rest of a short job. */
const nudged = new MillraceError('ABORTED', 'there is more room');

/** Includes the fence: a worker that was considered dead may get the same job again. */
function nameOf({ id, fence }: TaskToken): string {
  return `${id}:${fence}`;
}

function lostJob(id: string): MillraceError {
  return new MillraceError('TASK_STALE', `another worker has job ${id}`);
}

function cancelledJob(id: string): MillraceError {
  return new MillraceError('TASK_CANCELLED', `job ${id} was cancelled`);
}

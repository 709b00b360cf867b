// The workers of a process: claim as many jobs as there is room for, run them, and send heartbeats.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { slept } from '../../foundation/async/slept.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { claimLoop, type Cancel, type ClaimedItems } from '../../loops/claim-loop.ts';
import { startBeatThread } from './beat-thread.ts';
import { invalid } from '../rules/check-task.ts';
import { runTask, type RunOutcome } from './run-task.ts';
import type { TaskDefinition } from '../task-definition.ts';
import { taskLimits as limits } from '../task-limits.ts';
import type { ClaimedTask, Tasks } from '../tasks.ts';

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
  readonly stopping: AbortController;
  /** The time of the last request in which the engine confirmed that this worker has the job. */
  confirmedAtMs: number;
  /** The handler has returned; its outcome is not stored yet. */
  isSettling: boolean;
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
  const runs = new Map<ClaimedTask, Run>();
  const stopping = new AbortController();
  const startedAt = new Date(clock.now()).toISOString();
  const concurrency: Record<string, number> = { ...options.concurrency };
  /** Ends the wait of the running claim, because there is more room than it knows of. */
  let waiting = new AbortController();

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

  /** Room for more jobs of each type. */
  function room(): Record<string, number> {
    const free: Record<string, number> = {};
    const byType = Map.groupBy(runs, ([{ task }]) => task.type);
    for (const { name, workers } of tasks.types().filter((type) => byName.has(type.name))) {
      const most = concurrency[name] ?? workers;
      const ofType = byType.get(name) ?? [];
      // Outcomes are stored before the claim, so settling jobs do not count, up to the limit of running jobs.
      const settling = ofType.filter(([, { isSettling }]) => isSettling).length;
      const left = most + Math.min(settling, most) - ofType.length;
      // At most half of the limit: these jobs run while the next claim is on its way.
      if (left > 0) free[name] = Math.min(left, Math.ceil(most / 2), limits.batchMax);
    }
    return free;
  }

  async function claim(): Promise<ClaimedItems<ClaimedTask>> {
    waiting = new AbortController();
    try {
      const request = { worker, types: room(), leaseMs, waitMs: limits.claimWaitMsDefault };
      const items = await tasks.claim({ ...request, signal: waiting.signal });
      return { items, leasedAtMs: clock.now() };
    } catch (error) {
      if (hasCode(error, 'TASKS_CLOSED')) stopping.abort();
      else if (!hasCode(error, 'ABORTED')) throw error;
      return { items: [], leasedAtMs: 0 };
    }
  }

  /** The job stores its outcome itself; a `kept` one is released by `settle`. */
  async function run(
    claimed: ClaimedTask,
    onCancel: (cancel: Cancel) => void,
  ): Promise<RunOutcome> {
    const { task, token } = claimed;
    const definition = byName.get(task.type);
    if (definition === undefined) return 'kept';
    const halting = new AbortController();
    const current: Run = {
      stopping: halting,
      confirmedAtMs: task.claimedAt?.getTime() ?? clock.now(),
      isSettling: false,
    };
    runs.set(claimed, current);
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
      isLeaseCurrent: () => clock.now() < current.confirmedAtMs + leaseMs,
      signal: halting.signal,
      onSettling() {
        current.isSettling = true;
        nudge();
      },
    }).catch((err: unknown) => {
      // The outcome could not be stored: the sweeper finds the job by its worker or its deadline.
      observer.log?.error({ taskId: task.id, type: task.type, err }, 'job could not be settled');
      return 'gone' as const;
    });
    // A handler may ignore its signal: a job that must stop is released without it.
    const halted = new Promise<'kept'>((resolve) => {
      onCancel((reason) => {
        halting.abort(reason);
        resolve('kept');
      });
    });
    const outcome = await Promise.race([running, halted]);
    const { type, correlationId } = task;
    const attributes = { type, outcome, correlationId };
    observer.record?.('task_run_duration_ms', clock.now() - beganMs, attributes);
    span?.set({ outcome });
    span?.end();
    // A job that is released stays in the list until then, so that heartbeats keep its lease.
    if (outcome !== 'kept') runs.delete(claimed);
    nudge();
    return outcome;
  }

  /** Releases jobs that did not end in time: another worker continues after their last completed step. */
  async function release(claimed: ClaimedTask): Promise<void> {
    try {
      await tasks.release(claimed.token);
    } catch (err) {
      observer.log?.debug({ taskId: claimed.task.id, err }, 'could not release job');
    }
    runs.delete(claimed);
  }

  /** There is more room than the running claim knows of. */
  function nudge(): void {
    // If many jobs end at once, only the first one finds a claim to wake.
    if (!waiting.signal.aborted) waiting.abort(nudged);
    loop.recheck();
  }

  async function beatLoop(over: AbortSignal): Promise<void> {
    const everyMs = Math.min(Math.ceil(leaseMs / 3), 1_000);
    while (!over.aborted) {
      try {
        const reported = [...runs];
        const tokens = reported.map(([{ token }]) => token);
        const sentAtMs = clock.now();
        const states = await tasks.heartbeat({ worker, leaseMs, tokens, about: about() });
        // By position, not by id: a lost job may be running here again, under a newer fence.
        for (const [at, [{ task }, each]] of reported.entries()) {
          const { state, cancelAt } = states[at] ?? {};
          if (state === 'lost') {
            each.stopping.abort(
              new MillraceError('TASK_STALE', `another worker has job ${task.id}`),
            );
          } else if (cancelAt !== undefined) {
            each.stopping.abort(
              new MillraceError('TASK_CANCELLED', `job ${task.id} was cancelled`),
            );
          }
          if (state === 'claimed') each.confirmedAtMs = sentAtMs;
        }
      } catch (err) {
        if (hasCode(err, 'TASKS_CLOSED')) return;
        observer.log?.debug({ worker, err }, 'heartbeat failed');
      }
      await slept(clock, everyMs, over);
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

  const ending = new AbortController();
  const loop = claimLoop<ClaimedTask, RunOutcome>(
    {
      clock,
      leaseMs,
      drainMs,
      // `room` bounds the jobs of each type, and a claimed job starts at once.
      concurrency: Number.MAX_SAFE_INTEGER,
      bytesMax: Number.MAX_SAFE_INTEGER,
      bytesOf: () => 0,
      room: () => Object.values(room()).reduce((sum, count) => sum + count, 0),
      claim,
      run,
      release: () => 'kept',
      async settle(ended) {
        const kept = ended.filter(({ outcome }) => outcome === 'kept');
        await Promise.all(kept.map(({ item }) => release(item)));
      },
      onLost: (err) => observer.log?.warn({ worker, err }, 'task workers lost their engine'),
      onRestored: () => observer.log?.info({ worker }, 'task workers resumed'),
    },
    stopping.signal,
  );
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
    await Promise.all([loop.done, announced]);
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

/** One object, because creating an error with its stack costs more than the rest of a short job. */
const nudged = new MillraceError('ABORTED', 'there is more room');

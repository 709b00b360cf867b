// What a user writes: a name, maybe a schema, and a handler made of steps.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from '../contracts/apply-schema.ts';
import type { TraceContext } from '../foundation/observer.ts';
import type { Duration } from './duration.ts';
import type { ChildOutcome, NewTask } from './tasks.ts';

export interface StepOptions<Result = unknown> {
  /** Default: the type's `step_timeout`. */
  readonly timeout?: Duration | undefined;
  /** Tries after the first one that failed, within one attempt of the job. Default: 0. */
  readonly retries?: number | undefined;
  /** The step says `beat()` (or the job tells progress) at least so often; else it is taken for hung. */
  readonly heartbeat?: Duration | undefined;
  /** Undoes it, if the job fails for good or is cancelled: the last step first, each as a step. */
  readonly compensate?: ((result: Result) => void | Promise<void>) | undefined;
}

export interface StepScope {
  /** Fires when the step has taken too long, the job is cancelled, or its worker stops. */
  readonly signal: AbortSignal;
  beat(): void;
}

type ChildTask = Omit<NewTask, 'parentId' | 'key' | 'dedupeWindowMs' | 'tenant'>;

/** What a handler has. Everything outside of steps runs again when the job comes back. */
export interface TaskContext<Payload = unknown> {
  readonly taskId: string;
  readonly type: string;
  readonly tenant: string | undefined;
  readonly payload: Payload;
  /** From 1 on. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** What follow-up work carries: the flow, this job as its cause, the trace. */
  readonly caused: {
    readonly correlationId: string | undefined;
    readonly causationId: string;
    readonly trace: TraceContext | undefined;
  };
  /** Runs the work once: its result (JSON) is durable before the next step begins. */
  step<Result>(
    name: string,
    work: (scope: StepScope) => Result | Promise<Result>,
    options?: StepOptions<Result>,
  ): Promise<Result>;
  /**
   * Lets the worker go meanwhile. As all that waits (`waitForEvent`, `run`, `all`) it stands between steps;
   * inside of one it is `TASK_INVALID` at once.
   */
  sleep(duration: Duration, options?: { readonly name?: string | undefined }): Promise<void>;
  /** The event's payload, once it is there; undefined: not in time. Lets the worker go meanwhile. */
  waitForEvent<Event = unknown>(
    event: string,
    options?: { readonly timeout?: Duration | undefined; readonly name?: string | undefined },
  ): Promise<Event | undefined>;
  /** A child, and its result; a child that does not complete is `TASK_CHILD_FAILED`. */
  run<Result = unknown>(
    child: ChildTask,
    options?: { readonly name?: string | undefined },
  ): Promise<Result>;
  /** Children at once, and what became of each. */
  all(
    children: readonly ChildTask[],
    options?: { readonly name?: string | undefined },
  ): Promise<readonly ChildOutcome[]>;
  progress(percent: number, message?: string): Promise<void>;
}

export type TaskHandler<Payload = unknown, Result = unknown> = (
  context: TaskContext<Payload>,
) => Result | Promise<Result>;

export interface TaskDefinition<Payload = unknown> {
  readonly name: string;
  readonly schema: StandardSchemaV1<unknown, Payload> | undefined;
  readonly handler: TaskHandler<Payload>;
  /** A job of it to enqueue, with a payload that fits. */
  job(payload: Payload, rest?: Omit<NewTask, 'type' | 'payload'>): NewTask;
}

/**
 * Defines what runs the jobs of a type.
 *
 * @example
 * import { task } from 'millrace/tasks';
 *
 * const reportGen = task('report-gen', async (ctx) => {
 *   const rows = await ctx.step('load', async () => [1, 2, 3]);
 *   await ctx.sleep('1h');
 *   const approval = await ctx.waitForEvent('approved', { timeout: '2d' });
 *   return approval === undefined ? 'nobody cared' : rows.length;
 * });
 */
export function task(name: string, handler: TaskHandler): TaskDefinition;
export function task<Payload>(
  name: string,
  schema: StandardSchemaV1<unknown, Payload>,
  handler: TaskHandler<Payload>,
): TaskDefinition<Payload>;
export function task(
  name: string,
  ...rest: readonly [TaskHandler] | readonly [StandardSchemaV1, TaskHandler]
): TaskDefinition {
  const [schema, handler] = rest.length === 1 ? [undefined, rest[0]] : rest;
  return {
    name,
    schema,
    handler,
    job(payload, more = {}) {
      if (schema !== undefined) applySchema(name, schema, payload);
      return { ...more, type: name, payload };
    },
  };
}

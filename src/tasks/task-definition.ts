// The definition of a task: a name, an optional schema, and a handler that consists of steps.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from '../contracts/apply-schema.ts';
import type { TraceContext } from '../foundation/observer.ts';
import type { Duration } from '../foundation/duration.ts';
import type { ChildOutcome, NewTask } from './tasks.ts';

export interface StepOptions<Result = unknown> {
  /** Default: the type's `step_timeout`. */
  readonly timeout?: Duration | undefined;
  /** Retries within one attempt of the job. Default: 0. */
  readonly retries?: number | undefined;
  /** The step must call `beat()`, or report progress, at least this often; otherwise it has timed out. */
  readonly heartbeat?: Duration | undefined;
  /** Runs if the job fails or is cancelled, as a separate step; the last completed step first. */
  readonly compensate?: ((result: Result) => void | Promise<void>) | undefined;
}

export interface StepScope {
  /** Fires when the step exceeds its time limit, the job is cancelled, or its worker stops. */
  readonly signal: AbortSignal;
  beat(): void;
}

type ChildTask = Omit<NewTask, 'parentId' | 'key' | 'dedupeWindowMs' | 'tenant'>;

/** The context of a handler. Code outside of steps runs again when the job resumes. */
export interface TaskContext<Payload = unknown> {
  readonly taskId: string;
  readonly type: string;
  readonly tenant: string | undefined;
  readonly payload: Payload;
  /** The first is 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** For follow-up work: the flow, this job as its cause, the trace. */
  readonly caused: {
    readonly correlationId: string | undefined;
    readonly causationId: string;
    readonly trace: TraceContext | undefined;
  };
  /** Runs the work once: its result (JSON) is durable before the next step starts. */
  step<Result>(
    name: string,
    work: (scope: StepScope) => Result | Promise<Result>,
    options?: StepOptions<Result>,
  ): Promise<Result>;
  /**
   * Frees the worker until then. Like all waits (`waitForEvent`, `run`, `all`) it is only allowed between steps;
   * inside of a step it throws `TASK_INVALID`.
   */
  sleep(duration: Duration, options?: { readonly name?: string | undefined }): Promise<void>;
  /** The payload of the event; undefined after the timeout. Frees the worker until then. */
  waitForEvent<Event = unknown>(
    event: string,
    options?: { readonly timeout?: Duration | undefined; readonly name?: string | undefined },
  ): Promise<Event | undefined>;
  /** Runs a child and returns its result; throws `TASK_CHILD_FAILED` if the child does not complete. */
  run<Result = unknown>(
    child: ChildTask,
    options?: { readonly name?: string | undefined },
  ): Promise<Result>;
  /** Runs children concurrently, and returns the outcome of each. */
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
  /** A job to enqueue, with a valid payload. */
  job(payload: Payload, rest?: Omit<NewTask, 'type' | 'payload'>): NewTask;
}

/**
 * Defines the handler of a task type.
 *
 * @example
 * import { task } from 'millrace/tasks';
 *
 * const reportGen = task('report-gen', async (ctx) => {
 *   const rows = await ctx.step('load', async () => [1, 2, 3]);
 *   await ctx.sleep('1h');
 *   const approval = await ctx.waitForEvent('approved', { timeout: '2d' });
 *   return approval === undefined ? 'not approved in time' : rows.length;
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

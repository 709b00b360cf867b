// Live signals of jobs: progress and terminal states.

import type { Bus } from '../bus/bus.ts';
import { subjects } from '../contracts/subjects.ts';
import { isTerminal, taskTypeOf } from '../tasks/task-job.ts';
import type { Tasks } from '../tasks/tasks.ts';

export interface FollowTasksQuery {
  readonly type?: string | undefined;
  /** Follows only this job; the sequence ends when the job reaches a terminal state. */
  readonly id?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface FollowedSignal {
  readonly kind: 'progress' | 'terminal';
  readonly id: string;
  readonly at: Date;
  /** The signal of the stream: `taskId`, `type`, and its content. */
  readonly signal: Readonly<Record<string, unknown>>;
}

/**
 * Yields the task signals that are published from now on, until `signal` aborts. The subscription exists when the promise resolves.
 *
 * @example
 * import { createPlatform, followTasks } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * const engines = { bus: await platform.taskBus(), tasks: await platform.tasks() };
 * const query = { type: 'email-send', signal: AbortSignal.timeout(60_000) };
 * for await (const { kind, signal } of await followTasks(engines, query)) console.log(kind, signal);
 */
export async function followTasks(
  { bus, tasks }: { readonly bus: Bus; readonly tasks: Pick<Tasks, 'get'> },
  { id, type, tenant, signal }: FollowTasksQuery & { readonly signal: AbortSignal },
): Promise<AsyncIterable<FollowedSignal>> {
  const only = id === undefined ? type : taskTypeOf(id);
  const { all } = only === undefined ? subjects.tasks : subjects.tasks.type(only as 'any');
  const messages = await bus.subscribe(all, { signal });
  // The job may have ended before the subscription started.
  const now = id === undefined ? undefined : await tasks.get(id);
  return signalsOf();

  async function* signalsOf(): AsyncGenerator<FollowedSignal> {
    await using listening = messages;
    if (now !== undefined && isTerminal(now.state)) {
      const { id: taskId, state, failures, endedAt = now.updatedAt, error } = now;
      const payload = { taskId, type: now.type, state, failures, endedAt, error: error?.message };
      yield { kind: 'terminal', id: `t:${taskId}:${now.fence}`, at: endedAt, signal: payload };
      return;
    }
    for await (const message of listening) {
      const [, , family, stream] = message.subject.split('.');
      if (family === '_control' || (stream !== 'progress' && stream !== 'terminal')) continue;
      if (tenant !== undefined && message.tenant !== tenant) continue;
      const payload = message.payload as Readonly<Record<string, unknown>>;
      if (id !== undefined && payload['taskId'] !== id) continue;
      yield { kind: stream, id: message.id, at: message.time, signal: payload };
      if (id !== undefined && stream === 'terminal') return;
    }
  }
}

// The group `<type>-orchestrator` of each type: reads the progress streams and wakes parents. Completing a child
// wakes its parent immediately; if the process dies before that, this group does it within moments, and the
// sweeper as the last resort.

import { hasCode } from '../../foundation/error.ts';
import { sweepLoop } from '../../loops/sweep-loop.ts';
import { consumerGroups } from '../../contracts/subjects.ts';
import { Terminal } from '../../foundation/handler-outcome.ts';
import type { Tasks } from '../tasks.ts';

export interface TaskOrchestratorOptions {
  /** `consume` of the bus that contains the streams of these tasks. */
  readonly consume: (
    definition: { readonly group: string; readonly subject: string },
    handler: (message: { readonly payload: unknown }) => Promise<void>,
  ) => Promise<AsyncDisposable>;
  /** `group` of the same bus: registers the group of the workers, so that trims keep unprocessed messages. */
  readonly group?:
    | ((definition: { readonly group: string; readonly subject: string }) => Promise<unknown>)
    | undefined;
  /** How often it checks for new types. Default: 5 s. */
  readonly everyMs?: number | undefined;
}

/**
 * Wakes jobs by the progress streams, until it is disposed. Any number of processes may run it: they share the
 * groups.
 *
 * @example
 * import type { Bus } from 'millrace/bus';
 * import { startTaskOrchestrator, type Tasks } from 'millrace/tasks';
 *
 * const orchestrate = (tasks: Tasks, bus: Bus): AsyncDisposable =>
 *   startTaskOrchestrator(tasks, {
 *     consume: (group, handler) => bus.consume(group, handler),
 *     group: (definition) => bus.group(definition),
 *   });
 */
export function startTaskOrchestrator(
  tasks: Tasks,
  { consume, group: ensure, everyMs = 5_000 }: TaskOrchestratorOptions,
): AsyncDisposable {
  const { clock, observer, subjects, wakeParent } = tasks.core;
  // Including types that are no longer configured, because they may still have jobs.
  const consumers = new Map<string, AsyncDisposable>();
  const failing = new Set<string>();

  async function advance({ payload }: { readonly payload: unknown }): Promise<void> {
    const { kind, parentId } = (payload ?? {}) as Readonly<Record<string, unknown>>;
    if (kind !== 'ended' || typeof parentId !== 'string') return;
    try {
      const isWoken = await wakeParent(parentId);
      if (isWoken) observer.count?.('tasks_parents_woken_total', {});
    } catch (error) {
      // Not a signal of Millrace: the id of the job is invalid.
      if (hasCode(error, 'TASK_INVALID')) throw new Terminal(error.message);
      throw error;
    }
  }

  async function join(type: string): Promise<void> {
    const group = consumerGroups.orchestrator<string>(type);
    try {
      const { queue, progress } = subjects.tasks.type<string>(type);
      // Workers do not read this group; the engine acknowledges claimed jobs.
      await ensure?.({ group: consumerGroups.workers<string>(type), subject: queue });
      consumers.set(type, await consume({ group, subject: progress }, advance));
      if (failing.delete(type)) observer.log?.info({ group }, 'task orchestrator resumed');
    } catch (err) {
      // Logged once; the next round tries again, and the sweeper wakes parents until then.
      if (!failing.has(type)) observer.log?.warn({ group, err }, 'task orchestrator cannot read');
      failing.add(type);
    }
  }

  async function joinAll(signal: AbortSignal): Promise<void> {
    for (const { name } of tasks.types()) {
      if (signal.aborted) return;
      if (!consumers.has(name)) await join(name);
    }
  }

  const joining = sweepLoop(joinAll, {
    everyMs,
    clock,
    onFailure: (err) => observer.log?.error({ err }, 'task orchestrator failed'),
  });
  return {
    async [Symbol.asyncDispose]() {
      await joining[Symbol.asyncDispose]();
      const all = [...consumers.values()];
      consumers.clear();
      await Promise.all(all.map((consumer) => consumer[Symbol.asyncDispose]()));
    },
  };
}

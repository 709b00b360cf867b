// The group `<type>-orchestrator` of each type: reads what the progress streams tell, and advances jobs by
// it. Whoever ends a child wakes its parent at once, and may die before that; this comes next, within
// moments; the sweeper last.

import { hasCode } from '../../foundation/error.ts';
import { consumerGroups } from '../../contracts/subject-groups.ts';
import { Terminal } from '../../subscriptions/handler-outcome.ts';
import type { Tasks } from '../tasks.ts';

export interface TaskOrchestratorOptions {
  /** `bus.consume` of the house, of the bus that the streams of these tasks are in. */
  readonly consume: (
    definition: { readonly group: string; readonly subject: string },
    handler: (message: { readonly payload: unknown }) => Promise<void>,
  ) => Promise<AsyncDisposable>;
  /** `bus.group` of the same: the group of the workers is on the bus's list, and its trims keep what waits. */
  readonly group?:
    | ((definition: { readonly group: string; readonly subject: string }) => Promise<unknown>)
    | undefined;
  /** How often it looks for types that are new. Default: 5 s. */
  readonly everyMs?: number | undefined;
}

/**
 * Wakes jobs by what the progress streams tell, until it is disposed. Any number of processes may: they
 * share the groups.
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
  // Also of types that are no longer configured: their last jobs are still worked off.
  const consumers = new Map<string, AsyncDisposable>();
  const failing = new Set<string>();
  const stopping = new AbortController();

  async function advance({ payload }: { readonly payload: unknown }): Promise<void> {
    const { kind, parentId } = (payload ?? {}) as Readonly<Record<string, unknown>>;
    if (kind !== 'ended' || typeof parentId !== 'string') return;
    try {
      const isWoken = await wakeParent(parentId);
      if (isWoken) observer.count?.('tasks_parents_woken_total', {});
    } catch (error) {
      // Nothing of ours: no id of a job.
      if (hasCode(error, 'TASK_INVALID')) throw new Terminal(error.message);
      throw error;
    }
  }

  async function join(type: string): Promise<void> {
    const group = consumerGroups.orchestrator<string>(type);
    try {
      const { queue, progress } = subjects.tasks.type<string>(type);
      // Claims go past it; the engine acks what it hands out.
      await ensure?.({ group: consumerGroups.workers<string>(type), subject: queue });
      consumers.set(type, await consume({ group, subject: progress }, advance));
      if (failing.delete(type)) observer.log?.info({ group }, 'task orchestrator resumed');
    } catch (err) {
      // Once; it tries again, and the sweeper wakes parents meanwhile.
      if (!failing.has(type)) observer.log?.warn({ group, err }, 'task orchestrator cannot read');
      failing.add(type);
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      for (const { name } of tasks.types()) {
        if (stopping.signal.aborted) break;
        if (!consumers.has(name)) await join(name);
      }
      // A stop ends it, and the loop with it.
      await clock.sleep(everyMs, stopping.signal).catch(() => undefined);
    }
  }

  const done = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
      const all = [...consumers.values()];
      consumers.clear();
      await Promise.all(all.map((consumer) => consumer[Symbol.asyncDispose]()));
    },
  };
}

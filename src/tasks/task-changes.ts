// Changes of jobs that no worker of this process holds. Each change is guarded by the record's revision, and
// repeated if another process changed the job first. Also the consequences when a job reaches a terminal state.

import { createBatcher } from '../foundation/async/batcher.ts';
import { batchesOf } from '../foundation/async/batches-of.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { createWaiters, waitWithPoll } from '../foundation/async/waiters.ts';
import { invalid, refOf } from './rules/check-task.ts';
import { decideWake } from './rules/decide-queued.ts';
import type { DecideContext, Decision } from './rules/task-decision.ts';
import type { ChangeOutcome, ClaimRequest, TaskChange, TaskEngine } from './task-engine.ts';
import { isTerminal, subjectOfJob, type StoredTask, type TaskRef } from './task-job.ts';
import { taskLimits as limits } from './task-limits.ts';
import { runOf } from './task-record.ts';
import type { AroundLoad, ChildOutcome } from './tasks.ts';

type Decide = (task: StoredTask, context: DecideContext) => Decision | undefined;

export interface TaskChanges {
  /** Rejects with `TASK_UNKNOWN` if the job does not exist. */
  readonly load: (id: string) => Promise<StoredTask>;
  /** Guarded by the record's revision. False: another process changed the job first, or nothing was decided. */
  readonly change: (task: StoredTask, decide: Decide) => Promise<boolean>;
  /** Repeats `change` on the current record until it succeeds. False: nothing was decided. */
  readonly changeNow: (id: string, decide: Decide) => Promise<boolean>;
  readonly afterEnd: (task: StoredTask) => Promise<void>;
  /** True: all children of the job have ended, and the job was woken. */
  readonly wakeParent: (id: string) => Promise<boolean>;
  readonly whenEnded: (
    id: string,
    wait: {
      readonly timeoutMs: number | undefined;
      readonly signal: AbortSignal;
      readonly aroundLoad?: AroundLoad | undefined;
    },
  ) => Promise<StoredTask>;
}

export interface TaskChangesContext {
  readonly engine: TaskEngine;
  readonly changeBatcher: ChangeBatcher;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly decideContext: (type: string) => DecideContext;
  /** Removes the cached record of a job that no worker of this process runs. */
  readonly evict: (id: string) => void;
}

/** After this many conflicting changes the caller gets `TASK_CONFLICT`. */
const triesMax = 20;

/** How often `whenEnded` reads a job that may end in another process. */
const endPollMs = { first: 10, max: 500 } as const;

export function createTaskChanges(context: TaskChangesContext): TaskChanges {
  const { engine, changeBatcher, clock, observer, decideContext } = context;
  /** Callers of `whenEnded`, by the id of the job. */
  const endListeners = new Map<string, Set<() => void>>();

  async function load(id: string): Promise<StoredTask> {
    const [task] = await engine.get([refOf(id)]);
    if (task !== undefined) return task;
    throw new MillraceError('TASK_UNKNOWN', `unknown job '${id}'`, { details: { id } });
  }

  async function change(task: StoredTask, decide: Decide): Promise<boolean> {
    const { id, type, revision } = task.head;
    const decided = decide(task, decideContext(type));
    if (decided === undefined) return false;
    const { head, fields, signals } = decided;
    const guard = { revision };
    const subject = subjectOfJob(task.head);
    const outcome = await changeBatcher.change({ id, type, guard, head, fields, signals, subject });
    if (outcome.kind === 'stale') return false;
    const state = head.state ?? task.head.state;
    if (state !== 'running') context.evict(id);
    if (isTerminal(state)) await afterEnd({ ...task, head: { ...task.head, ...head } });
    return true;
  }

  async function changeNow(id: string, decide: Decide): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const task = await load(id);
      if (decide(task, decideContext(task.head.type)) === undefined) return false;
      if (await change(task, decide)) return true;
    }
    throw new MillraceError(
      'TASK_CONFLICT',
      `job '${id}' was changed by others ${triesMax} times in a row: retry later`,
      { details: { id } },
    );
  }

  async function afterEnd({ head }: StoredTask): Promise<void> {
    observer.count?.('tasks_ended_total', { type: head.type, state: head.state });
    const seconds = (head.endedAtMs - head.enqueuedAtMs) / 1_000;
    observer.record?.('task_duration_seconds', seconds, { type: head.type, state: head.state });
    for (const listener of endListeners.get(head.id) ?? []) listener();
    if (head.parentId === '') return;
    try {
      await wakeParent(head.parentId);
    } catch (err) {
      // The sweeper wakes a parent whose children have all ended.
      observer.log?.warn({ taskId: head.parentId, err }, 'parent could not be woken');
    }
  }

  async function wakeParent(id: string): Promise<boolean> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const [parent] = await engine.get([refOf(id)]);
      if (parent?.head.state !== 'waiting') return false;
      const { waitsFor } = runOf(parent);
      if (waitsFor?.kind !== 'children') return false;
      if (!(await haveEnded(engine, waitsFor.ids.map(refOf)))) return false;
      if (await change(parent, decideWake)) return true;
    }
    return false;
  }

  /** A job that ends in this process resolves the wait immediately; polling finds jobs that end elsewhere. */
  async function whenEnded(
    id: string,
    {
      timeoutMs = Infinity,
      signal,
      aroundLoad = (work) => work(),
    }: Parameters<TaskChanges['whenEnded']>[1],
  ): Promise<StoredTask> {
    const untilMs = clock.now() + timeoutMs;
    const ended = createWaiters();
    let hasEnded = false;
    const onEnd = (): void => {
      hasEnded = true;
      ended.wakeAll();
    };
    const stopListening = listenForEnd(id, onEnd);
    try {
      for (let pollMs: number = endPollMs.first; ; pollMs = Math.min(pollMs * 2, endPollMs.max)) {
        hasEnded = false;
        const [head] = await engine.heads([refOf(id)]);
        if (head === undefined || isTerminal(head.state)) return await aroundLoad(() => load(id));
        const leftMs = untilMs - clock.now();
        if (leftMs <= 0) {
          throw new MillraceError(
            'TASK_TIMEOUT',
            `job '${id}' did not end within ${timeoutMs} ms`,
            {
              details: { id, state: head.state },
            },
          );
        }
        // The job may have ended since it was read.
        if (hasEnded) continue;
        await waitWithPoll(ended, { clock, pollMs: Math.min(pollMs, leftMs), signal });
      }
    } finally {
      stopListening();
    }
  }

  function listenForEnd(id: string, listener: () => void): () => void {
    const listeners = endListeners.get(id) ?? new Set();
    endListeners.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && endListeners.get(id) === listeners) endListeners.delete(id);
    };
  }

  return { load, change, changeNow, afterEnd, wakeParent, whenEnded };
}

async function haveEnded(engine: TaskEngine, refs: readonly TaskRef[]): Promise<boolean> {
  const heads = await engine.heads(refs);
  return heads.every((head) => head === undefined || isTerminal(head.state));
}

/**
 * Undefined: at least one has not ended. A child without a record ended so long ago that it was removed. `subject`: the
 * person that the parent is about; what a child has about another person is not copied to the parent.
 */
export async function endedChildren(
  engine: TaskEngine,
  ids: readonly string[],
  subject?: string,
): Promise<readonly ChildOutcome[] | undefined> {
  const refs = ids.map(refOf);
  if (!(await haveEnded(engine, refs))) return undefined;
  const outcomes: ChildOutcome[] = [];
  let bytes = 0;
  for (const some of batchesOf(refs, { countMax: limits.wholeJobsMax })) {
    const tasks = await engine.get(some);
    const found = tasks.map((task, at) => outcomeOf(some[at]?.id ?? '', task, subject));
    outcomes.push(...found);
    bytes += Buffer.byteLength(JSON.stringify(found));
    if (bytes > limits.jobBytesMax) {
      throw invalid('tasks', `have results of more than ${limits.jobBytesMax} bytes`);
    }
  }
  return outcomes;
}

function outcomeOf(
  id: string,
  task: StoredTask | undefined,
  subject: string | undefined,
): ChildOutcome {
  const state = task?.head.state;
  if (task === undefined || state === undefined || !isTerminal(state)) {
    return { id, state: 'failed', error: { message: 'the record of the child was removed' } };
  }
  const childSubject = subjectOfJob(task.head);
  if (childSubject !== undefined && childSubject !== subject) {
    const hidden = { message: 'the child is about a person: see its record' };
    return { id, state, error: state === 'completed' ? undefined : hidden };
  }
  const { result, error } = runOf(task);
  return { id, state, result, error: state === 'completed' ? undefined : error };
}

/** Batches the changes of this process: concurrent changes share an engine call, and a claim may join them. */
export interface ChangeBatcher {
  change(change: TaskChange): Promise<ChangeOutcome>;
  /** Joins waiting changes; undefined: there were none, or another claim joined them first. */
  claimAlong(request: ClaimRequest): Promise<readonly StoredTask[] | undefined>;
  idle(): Promise<void>;
}

type Item =
  | { readonly change: TaskChange; readonly claim?: undefined }
  | { readonly claim: ClaimRequest; readonly change?: undefined };
type ItemResult = ChangeOutcome | readonly StoredTask[] | undefined;

export function createChangeBatcher(engine: TaskEngine, now: () => number): ChangeBatcher {
  const send = async (items: readonly Item[]): Promise<readonly ItemResult[]> => {
    const changes = items.flatMap(({ change }) => (change === undefined ? [] : [change]));
    const claims = items.flatMap(({ claim }) => (claim === undefined ? [] : [claim]));
    const { outcomes, claimed } = await engine.changeAndClaim(changes, claims[0], now());
    const results = outcomes.values();
    let hasClaimed = false;
    return items.map(({ change }): ItemResult => {
      if (change !== undefined) return results.next().value ?? { kind: 'stale', head: undefined };
      // A call contains one claim.
      const result = hasClaimed ? undefined : claimed;
      hasClaimed = true;
      return result;
    });
  };
  const batcher = createBatcher<Item, ItemResult>(send, {
    batchMax: limits.batchMax,
    callsMax: engine.callsAtOnce ?? 1,
    // Changes of one job are stored in order.
    keyOf: ({ change }) => change?.id,
  });

  return {
    change: (change) => batcher.add({ change }) as Promise<ChangeOutcome>,
    async claimAlong(request) {
      if (batcher.waiting === 0) return undefined;
      return batcher.add({ claim: request }) as Promise<readonly StoredTask[] | undefined>;
    },
    idle: () => batcher.idle(),
  };
}

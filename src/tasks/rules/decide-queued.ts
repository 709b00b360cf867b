// How a job comes back to the queue, as pure decisions: done again, woken, due, or given back.

import { letGo, noted, type DecideContext, type Decision } from './task-decision.ts';
import { isTerminal, type StoredTask } from '../task-job.ts';
import { eventField, infoOf, runOf, stepField, stepsOf } from '../task-record.ts';

/** Undefined: it has not ended, so there is nothing to do again. */
export function decideRetry(
  task: StoredTask,
  how: { readonly fromStep?: string | undefined; readonly by?: string | undefined },
  { nowMs, signals }: DecideContext,
): Decision | undefined {
  const { head } = task;
  if (!isTerminal(head.state)) return undefined;
  const steps = stepsOf(task);
  const from = steps.find(([name]) => name === how.fromStep)?.[1].at ?? Number.POSITIVE_INFINITY;
  // What was undone has to be done again; and what failed is tried again anyway.
  const undone = new Set(
    steps.flatMap(([name]) => (name.startsWith('undo:') ? [name.slice(5)] : [])),
  );
  const dropped = steps.filter(
    ([name, step]) =>
      step.at >= from ||
      step.kind === 'compensation' ||
      undone.has(name) ||
      step.state === 'failed',
  );
  const {
    result: _result,
    error: _error,
    ending: _ending,
    progress: _progress,
    ...run
  } = noted(task, nowMs, {
    what: 'retried',
    text: how.fromStep === undefined ? undefined : `from ${how.fromStep}`,
  });
  const next = {
    state: 'queued' as const,
    // The next end is another end, with a signal of its own.
    fence: head.fence + 1,
    dueAtMs: nowMs,
    failures: 0,
    endedAtMs: 0,
    cancelAtMs: 0,
  };
  return {
    head: next,
    fields: {
      run: JSON.stringify(run),
      ...Object.fromEntries(dropped.map(([name]) => [stepField(name), null])),
    },
    signals: [signals.queued({ ...head, ...next }, infoOf(task))],
  };
}

/** Undefined: it has ended, nobody will ask for it. */
export function decideEvent(
  task: StoredTask,
  event: { readonly name: string; readonly id: string; readonly payload: unknown },
  context: DecideContext,
): Decision | undefined {
  if (isTerminal(task.head.state)) return undefined;
  const { nowMs } = context;
  const text = JSON.stringify({ payload: event.payload, atMs: nowMs });
  const fields = { [eventField(event.name, event.id)]: text };
  const { waitsFor } = runOf(task);
  const isAwaited =
    task.head.state === 'waiting' && waitsFor?.kind === 'event' && waitsFor.event === event.name;
  if (!isAwaited) return { head: {}, fields, signals: [] };
  const woken = decideWake(task, context);
  return { ...woken, fields: { ...woken.fields, ...fields } };
}

/** What it waited for is there: a worker may go on with it now. */
export function decideWake(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

/** Its time has come: the queue's stream is told; whoever claims does not wait for that. */
export function decideDue(task: StoredTask, { signals }: DecideContext): Decision | undefined {
  if (task.head.state !== 'scheduled') return undefined;
  const head = { state: 'queued' as const };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

/** Nobody has looked at it: as if it had not been claimed, but for the fence. */
export function decideRelease(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { ...letGo, state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

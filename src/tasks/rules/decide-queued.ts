// How a job returns to the queue, as pure decisions: retried, woken, due, or released.

import { released, addHistory, type DecideContext, type Decision } from './task-decision.ts';
import { isTerminal, type StoredTask } from '../task-job.ts';
import { eventField, infoOf, runOf, stepField, stepsOf } from '../task-record.ts';

/** Undefined: it has not ended, so it cannot be retried. */
export function decideRetry(
  task: StoredTask,
  how: { readonly fromStep?: string | undefined; readonly by?: string | undefined },
  { nowMs, signals }: DecideContext,
): Decision | undefined {
  const { head } = task;
  if (!isTerminal(head.state)) return undefined;
  const steps = stepsOf(task);
  const from = steps.find(([name]) => name === how.fromStep)?.[1].at ?? Number.POSITIVE_INFINITY;
  // Compensated and failed steps run again.
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
  } = addHistory(task, nowMs, {
    what: 'retried',
    text: how.fromStep === undefined ? undefined : `from ${how.fromStep}`,
  });
  const next = {
    state: 'queued' as const,
    // A new fence, so that the next end has its own signal.
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

/** Undefined: the job has ended. */
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

/** The job's wait is over: a worker may continue it now. */
export function decideWake(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

/** The job is due: publishes its queue signal. A claim does not wait for this. */
export function decideDue(task: StoredTask, { signals }: DecideContext): Decision | undefined {
  if (task.head.state !== 'scheduled') return undefined;
  const head = { state: 'queued' as const };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

/** As if it had not been claimed, except for the fence. */
export function decideRelease(task: StoredTask, { nowMs, signals }: DecideContext): Decision {
  const head = { ...released, state: 'queued' as const, dueAtMs: nowMs };
  return { head, fields: {}, signals: [signals.queued({ ...task.head, ...head }, infoOf(task))] };
}

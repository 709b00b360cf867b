// What happened to a job, in one order: its history, and when its steps began and ended.

import type { StoredTask } from './task-job.ts';
import { runOf, stepsOf } from './task-record.ts';
import type { TimelineEntry } from './tasks.ts';

export function timelineOf(task: StoredTask): readonly TimelineEntry[] {
  const { history } = runOf(task);
  const { head } = task;
  const entries = history.map(({ atMs, what, step, worker, text }) => ({
    atMs,
    what,
    step,
    worker,
    text,
  }));
  // A claim is written down by what follows it.
  const isClaimKnown = history.some(
    ({ what, atMs }) => what === 'claimed' && atMs === head.claimedAtMs,
  );
  if (head.state === 'running' && !isClaimKnown) {
    const claimed = { atMs: head.claimedAtMs, what: 'claimed', worker: head.worker };
    entries.push({ ...claimed, step: undefined, text: undefined });
  }
  const steps = stepsOf(task).flatMap(([step, record]) => [
    {
      atMs: record.startedAtMs,
      what: `${record.kind} started`,
      step,
      worker: undefined,
      text: undefined,
    },
    ...(record.endedAtMs === undefined
      ? []
      : [
          {
            atMs: record.endedAtMs,
            what: `${record.kind} ${record.state}`,
            step,
            worker: undefined,
            text: record.error?.message,
          },
        ]),
  ]);
  return [...entries, ...steps]
    .map((entry, at) => ({ entry, at }))
    .toSorted((a, b) => a.entry.atMs - b.entry.atMs || a.at - b.at)
    .map(({ entry: { atMs, ...rest } }) => ({ at: new Date(atMs), ...rest }));
}

// Memory cases: every subject runs in a new process, because memory freed by one subject would still
// be resident when the next one is measured.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Benchmark, Case, CaseRounds } from './benchmark.ts';
import { rotate } from './schedule.ts';
import type { CaseLimits } from './timing.ts';

/** The measurement for the child process. */
export interface MemoryTask {
  readonly url: string;
  readonly case: string;
  readonly subject: string;
  readonly quick: boolean;
}

export interface MemoryReply {
  readonly rssMiB?: number | undefined;
  readonly error?: string | undefined;
}

const roundsMax = 3;

export async function measureMemory(
  benchmark: Benchmark,
  work: Case,
  limits: CaseLimits & { readonly quick: boolean },
): Promise<CaseRounds> {
  const subjects = work.subjects.map(({ name }) => ({
    subject: name,
    rounds: [] as { rssMiB: number }[],
  }));
  const deadlineMs = Math.min(performance.now() + limits.budgetMs, limits.endMs);
  let roundMs = 0;
  for (let round = 0; round < roundsMax; round += 1) {
    const startedAt = performance.now();
    if (round > 0 && startedAt + roundMs > deadlineMs) break;
    for (const { subject, rounds } of rotate(subjects, round)) {
      const task = { url: benchmark.url, case: work.name, subject, quick: limits.quick };
      rounds.push({ rssMiB: await inChild(task, limits.signal) });
    }
    roundMs = performance.now() - startedAt;
  }
  return { case: work.name, goals: work.goals ?? [], subjects };
}

async function inChild(task: MemoryTask, signal: AbortSignal): Promise<number> {
  const child = fork(new URL('memory-child.ts', import.meta.url), [JSON.stringify(task)], {
    signal,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  let reply: MemoryReply = {};
  child.on('message', (message) => {
    reply = message as MemoryReply;
  });
  await exited;
  if (reply.rssMiB !== undefined) return reply.rssMiB;
  throw new Error(
    `memory of '${task.subject}': ${reply.error ?? 'the child process did not reply'}`,
  );
}

// Throughput and latency cases: the subjects take turns in one process, so that a slow machine slows all
// of them.

import { setImmediate } from 'node:timers/promises';
import type { Case, CaseRounds, Round, Runner } from './benchmark.ts';
import { collectGarbage } from './garbage.ts';
import { nextBatch, planCase, rotate, type Plan } from './schedule.ts';
import { percentile } from './statistics.ts';

export interface CaseLimits {
  /** The time for measuring, after setup. */
  readonly budgetMs: number;
  /** In the time of `performance.now()`: measuring stops here even if budget is left. */
  readonly endMs: number;
  readonly roundsMax: number;
  readonly signal: AbortSignal;
}

interface Contender {
  readonly subject: string;
  readonly runner: Runner;
  n: number;
  readonly batch: number | undefined;
  readonly rounds: Round[];
}

interface Slice {
  readonly elapsedMs: number;
  readonly samplesMs: readonly number[];
}

/** Stores the results of runs, so that they cannot be optimised away. */
const sink: { kept: unknown } = { kept: undefined };

export async function timeCase(work: Case, limits: CaseLimits): Promise<CaseRounds> {
  // Closes every subject, even after another one failed to open or to close.
  await using opened = new AsyncDisposableStack();
  const contenders: Contender[] = [];
  for (const { name, setup, batch } of work.subjects) {
    limits.signal.throwIfAborted();
    const runner = await setup();
    opened.defer(async () => runner.teardown?.());
    contenders.push({ subject: name, runner, batch, n: batch ?? work.batch ?? 1, rounds: [] });
  }
  const startMs = performance.now();
  const deadlineMs = Math.min(startMs + limits.budgetMs, limits.endMs);
  const plan = planCase({
    budgetMs: Math.max(deadlineMs - startMs, 0),
    subjects: contenders.length,
    measure: work.measure === 'latency' ? 'latency' : 'throughput',
    roundsMax: limits.roundsMax,
  });
  for (const contender of contenders) await warmUp(contender, work, plan, limits.signal);
  await playRounds(contenders, work, plan, { deadlineMs, signal: limits.signal });
  sink.kept = undefined;
  return {
    case: work.name,
    goals: work.goals ?? [],
    subjects: contenders.map(({ subject, rounds, batch }) => ({ subject, rounds, batch })),
  };
}

/** Warms up the compiler and finds the batch that fills a slice; not counted. */
async function warmUp(
  contender: Contender,
  work: Case,
  plan: Plan,
  signal: AbortSignal,
): Promise<void> {
  let spentMs = 0;
  let elapsedMs = 0;
  const fixed = work.batch !== undefined;
  while (spentMs < plan.warmUpMs || (!fixed && elapsedMs < plan.sliceMs / 2)) {
    ({ elapsedMs } = await runSlice(contender, signal));
    spentMs += elapsedMs;
    if (work.roundsMin !== undefined) return;
    if (!fixed) contender.n = nextBatch(contender.n, { elapsedMs, targetMs: plan.sliceMs });
  }
}

async function playRounds(
  contenders: readonly Contender[],
  work: Case,
  plan: Plan,
  { deadlineMs, signal }: { readonly deadlineMs: number; readonly signal: AbortSignal },
): Promise<void> {
  let roundMs = 0;
  let garbageMs = 0;
  const roundsMax = Math.max(plan.roundsMax, work.roundsMin ?? 1);
  for (let round = 0; round < roundsMax; round += 1) {
    const startedAt = performance.now();
    // The minimum number of rounds is always played; further ones only while there is time.
    if (round >= (work.roundsMin ?? 1) && startedAt + roundMs > deadlineMs) break;
    // With a large heap, garbage collection would use the time for measuring.
    if (garbageMs <= roundMs / 4) {
      collectGarbage();
      garbageMs = performance.now() - startedAt;
    }
    for (const contender of rotate(contenders, round)) {
      const slice = await runSlice(contender, signal);
      contender.rounds.push(toRound(work, contender.n, slice));
    }
    roundMs = performance.now() - startedAt;
  }
}

async function runSlice({ runner, n }: Contender, signal: AbortSignal): Promise<Slice> {
  // Synchronous work does not yield, and an interrupt must be noticed.
  await setImmediate();
  signal.throwIfAborted();
  await runner.prepare?.(n);
  const samplesMs: number[] = [];
  const startedAt = performance.now();
  const outcome = runner.run(n, (ms) => void samplesMs.push(ms));
  sink.kept = outcome instanceof Promise ? await outcome : outcome;
  const elapsedMs = performance.now() - startedAt;
  await runner.finish?.();
  return { elapsedMs, samplesMs };
}

function toRound(work: Case, n: number, { elapsedMs, samplesMs }: Slice): Round {
  if (work.measure === 'throughput') return { perSecond: (1_000 * n) / elapsedMs };
  if (samplesMs.length === 0) throw new Error(`'${work.name}' measures latency but records none`);
  return { p50Ms: percentile(samplesMs, 50), p99Ms: percentile(samplesMs, 99) };
}

// Throughput and latency cases: the subjects take turns in one process, so that whatever slows the
// machine down for a while slows all of them down.

import { setImmediate } from 'node:timers/promises';
import type { Case, CaseRounds, Round, Runner } from './benchmark.ts';
import { collectGarbage } from './garbage.ts';
import { nextBatch, planCase, rotate, type Plan } from './schedule.ts';
import { percentile } from './statistics.ts';

export interface CaseLimits {
  /** For measuring, once everything is set up. */
  readonly budgetMs: number;
  /** In the time of `performance.now()`: whatever is left of the budget then is lost. */
  readonly endMs: number;
  readonly roundsMax: number;
  readonly signal: AbortSignal;
}

interface Contender {
  readonly subject: string;
  readonly runner: Runner;
  n: number;
  readonly batch?: number;
  readonly rounds: Round[];
}

interface Slice {
  readonly elapsedMs: number;
  readonly samplesMs: readonly number[];
}

/** Results of runs end here: a value that is stored cannot be optimised away. */
const sink: { kept: unknown } = { kept: undefined };

export async function timeCase(work: Case, limits: CaseLimits): Promise<CaseRounds> {
  // Closes every subject, also after one of them failed to open or to close.
  await using opened = new AsyncDisposableStack();
  const contenders: Contender[] = [];
  for (const { name, setup, batch } of work.subjects) {
    limits.signal.throwIfAborted();
    const runner = await setup();
    opened.defer(async () => runner.teardown?.());
    const own = batch === undefined ? {} : { batch };
    contenders.push({ subject: name, runner, n: batch ?? work.batch ?? 1, rounds: [], ...own });
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
    subjects: contenders.map(({ subject, rounds, batch }) => ({
      subject,
      rounds,
      ...(batch === undefined ? {} : { batch }),
    })),
  };
}

/** Lets the compiler settle and finds the batch that fills a slice; nothing of it is counted. */
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
    // Some rounds there must be; a further one only while there is time for it.
    if (round >= (work.roundsMin ?? 1) && startedAt + roundMs > deadlineMs) break;
    // With a large heap, collecting would take the time that is there for measuring.
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
  // Synchronous work never gives way by itself, and an interrupt must come through.
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

// Runs a benchmark: divides the time between its cases, measures them one after the other, and continues
// after a failed case.

import type { Benchmark, Case, CaseRounds } from './benchmark.ts';
import { measureMemory } from './memory.ts';
import { openCases } from './open-cases.ts';
import { timeCase } from './timing.ts';

export interface RunOptions {
  readonly quick: boolean;
  readonly signal: AbortSignal;
  /** Runs only the cases whose name contains this string. */
  readonly only?: string | undefined;
  readonly budgets?: Budgets | undefined;
  readonly onCase?: ((measured: CaseRounds) => void) | undefined;
}

interface Budgets {
  /** Divided between the cases; setup time is added. */
  readonly measuringMs: number;
  /** Includes setup: after this time, a case that is set up gets only one round. */
  readonly totalMs: number;
  readonly roundsMax: number;
}

interface CaseFailure {
  readonly case: string;
  readonly error: unknown;
}

export interface Outcome {
  readonly measured: readonly CaseRounds[];
  readonly failures: readonly CaseFailure[];
}

const quickBudgets: Budgets = { measuringMs: 30_000, totalMs: 42_000, roundsMax: 7 };
const fullRoundsMax = 15;
const fullSecondsPerSubject = 5;

/** Measures every case; an abort closes everything open and then rejects. */
export async function runBenchmark(benchmark: Benchmark, options: RunOptions): Promise<Outcome> {
  const { quick, signal, only = '' } = options;
  await using opened = await openCases(benchmark, { quick, signal });
  const cases = opened.cases.filter(({ name }) => name.includes(only));
  const budgets = options.budgets ?? (quick ? quickBudgets : fullBudgets(cases, benchmark));
  const msPerSubject = budgets.measuringMs / countSubjects(cases);
  const endMs = performance.now() + budgets.totalMs;
  const measured: CaseRounds[] = [];
  const failures: CaseFailure[] = [];
  for (const work of cases) {
    const budgetMs = msPerSubject * work.subjects.length;
    const limits = { budgetMs, endMs, roundsMax: budgets.roundsMax, signal };
    try {
      const rounds =
        work.measure === 'memory'
          ? await measureMemory(benchmark, work, { ...limits, quick })
          : await timeCase(work, limits);
      measured.push(rounds);
      options.onCase?.(rounds);
    } catch (error) {
      signal.throwIfAborted();
      failures.push({ case: work.name, error });
    }
  }
  return { measured, failures };
}

function fullBudgets(
  cases: readonly Case[],
  { secondsPerSubject = fullSecondsPerSubject }: Pick<Benchmark, 'secondsPerSubject'>,
): Budgets {
  const measuringMs = countSubjects(cases) * secondsPerSubject * 1_000;
  return { measuringMs, totalMs: 2 * measuringMs, roundsMax: fullRoundsMax };
}

function countSubjects(cases: readonly Case[]): number {
  return cases.reduce((sum, { subjects }) => sum + subjects.length, 0);
}

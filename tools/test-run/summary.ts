// The summary that a test run prints when it has finished.

import { budget, budgetSeconds, partOf } from './budget.ts';
import { minutes } from './progress.ts';
import type { TestResult } from './test-run.ts';

const slowestMax = 10;

export interface SummaryOptions {
  /** Wall clock of the run. */
  readonly seconds: number;
  /** Prints how much of the time budget each part took. */
  readonly showsBudget?: boolean;
}

/** Prints the summary; a failure, or a run without any test, sets the exit code. */
export function printSummary(
  results: readonly TestResult[],
  { startedAt, ...options }: Omit<SummaryOptions, 'seconds'> & { readonly startedAt: number },
): void {
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(summarize(results, { seconds, ...options }));
  const isGreen = results.every(({ failed }) => failed === 0);
  if (!isGreen || !results.some(({ passed }) => passed > 0)) process.exitCode = 1;
}

export function summarize(results: readonly TestResult[], options: SummaryOptions): string {
  const { seconds, showsBudget = false } = options;
  const total = (count: (result: TestResult) => number): number =>
    results.reduce((sum, result) => sum + count(result), 0);
  const passed = total((result) => result.passed);
  const failed = total((result) => result.failed);
  const skipped = total((result) => result.skipped.length);
  return [
    ...skippedLines(results),
    ...slowestLines(results),
    ...(showsBudget ? budgetLines(results, seconds) : []),
    ...(passed + failed === 0 ? ['no test ran'] : []),
    `${results.length} files in ${minutes(seconds)} min`,
    `${passed} passed, ${failed} failed, ${skipped} skipped`,
  ].join('\n');
}

function skippedLines(results: readonly TestResult[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const reason of results.flatMap(({ skipped }) => skipped)) {
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (counts.size === 0) return [];
  const rows = [...counts].toSorted(([, one], [, other]) => other - one);
  return ['Skipped:', ...rows.map(([reason, count]) => `${pad(count, 5)} × ${reason}`), ''];
}

function slowestLines(results: readonly TestResult[]): readonly string[] {
  const slowest = results
    .toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, slowestMax)
    .map(({ name, seconds }) => `${pad(seconds.toFixed(1), 7)} s  ${name}`);
  return ['Slowest:', ...slowest, ''];
}

/** Files run side by side: each part took its share of the wall clock. */
function budgetLines(results: readonly TestResult[], wallSeconds: number): readonly string[] {
  const busySeconds = results.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = budget.map((part) => {
    const own = results.filter(({ name }) => partOf(name) === part);
    const busy = own.reduce((sum, { seconds }) => sum + seconds, 0);
    const took = (busy / busySeconds) * wallSeconds;
    return [part.name, own.length, took.toFixed(0), part.seconds] as const;
  });
  const all = ['all', results.length, wallSeconds.toFixed(0), budgetSeconds] as const;
  return [
    'Time budget (2 idle cores):    files   took  budget',
    ...[...rows, all].map(
      ([name, files, took, of]) =>
        `  ${name.padEnd(28)} ${pad(files, 5)} ${pad(took, 4)} s  ${pad(of, 4)} s`,
    ),
    '',
  ];
}

function pad(value: number | string, width: number): string {
  return String(value).padStart(width);
}

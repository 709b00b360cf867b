// Prints results: one aligned table per case, and a line for each goal.

import type { CaseRounds } from './benchmark.ts';
import {
  judgeGoals,
  ratiosOf,
  resultsOf,
  spreadOf,
  type GoalOutcome,
  type Result,
} from './results.ts';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function renderCase(measured: CaseRounds): string {
  const results = resultsOf(measured);
  const ratios = ratiosOf(results);
  const columns = valueColumns(results);
  const body = results.map((result, index) => {
    const subject = measured.subjects[index];
    return [
      [result.subject],
      columns.map(({ key }) => formatNumber(result[key])),
      subject === undefined ? '' : `±${Math.round(100 * spreadOf(subject))} %`,
      ratios
        .filter(({ vs }) => vs === result.subject || vs === `${result.subject} (p99)`)
        .map(({ ratio }) => `${formatNumber(ratio)}×`)
        .join(' / '),
    ].flat();
  });
  const header = ['', ...columns.map(({ title }) => title), 'spread', 'ratio'];
  const goals = judgeGoals(measured.goals, results).map(renderGoal);
  const rounds = measured.subjects[0]?.rounds.length ?? 0;
  return [
    `${measured.case} (median of ${rounds})`,
    ...alignColumns([header, ...body]).map((line) => `  ${line}`),
    ...measured.subjects.flatMap(({ subject, batch }) =>
      batch === undefined ? [] : [`  ${subject}: ${whole.format(batch)} in each round`],
    ),
    ...goals.map((line) => `  ${line}`),
  ].join('\n');
}

/** Aligns the first column to the left and numbers to the right. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    widths
      .map((width, column) => {
        const cell = row[column] ?? '';
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd(),
  );
}

export function formatNumber(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  if (Math.abs(value) >= 100) return whole.format(value);
  return value.toPrecision(3);
}

function renderGoal({ goal, value, met }: GoalOutcome): string {
  const outcome =
    value === undefined ? 'not measured' : `${met ? 'met' : 'not met'} (${formatNumber(value)})`;
  return `goal: ${goal}: ${outcome}`;
}

function valueColumns(
  results: readonly Result[],
): { readonly key: 'perSecond' | 'p50Ms' | 'p99Ms' | 'rssMiB'; readonly title: string }[] {
  const all = [
    { key: 'perSecond', title: 'per second' },
    { key: 'p50Ms', title: 'p50 ms' },
    { key: 'p99Ms', title: 'p99 ms' },
    { key: 'rssMiB', title: 'MiB' },
  ] as const;
  return all.filter(({ key }) => results.some((result) => result[key] !== undefined));
}

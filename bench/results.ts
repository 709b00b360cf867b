// From rounds to published results: medians per subject, and ratios between Millrace and the others.

import { ours, type CaseRounds, type Goal, type Round, type SubjectRounds } from './benchmark.ts';
import { median, spread } from './statistics.ts';

export interface Result {
  readonly case: string;
  readonly subject: string;
  readonly perSecond?: number | undefined;
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  readonly rssMiB?: number | undefined;
}

/** Above 1, Millrace is better, whatever is measured. */
export interface Ratio {
  readonly case: string;
  readonly vs: string;
  readonly ratio: number;
}

export interface GoalOutcome {
  readonly goal: string;
  /** `undefined` if it could not be measured. */
  readonly value: number | undefined;
  readonly met: boolean;
}

const metrics = {
  perSecond: { moreIsBetter: true, suffix: '' },
  p50Ms: { moreIsBetter: false, suffix: '' },
  p99Ms: { moreIsBetter: false, suffix: ' (p99)' },
  rssMiB: { moreIsBetter: false, suffix: '' },
} as const;
type Metric = keyof typeof metrics;
const metricNames = Object.keys(metrics) as Metric[];

export function resultsOf({ case: name, subjects }: CaseRounds): readonly Result[] {
  return subjects.map(({ subject, rounds }) => {
    const medians = metricsIn(rounds).map((metric) => [
      metric,
      significant(median(valuesOf(rounds, metric))),
    ]);
    return { case: name, subject, ...Object.fromEntries(medians) } as Result;
  });
}

/** Computed from the published medians, so that a reader can verify them. */
export function ratiosOf(results: readonly Result[]): readonly Ratio[] {
  const mine = results.find(({ subject }) => subject === ours);
  if (mine === undefined) return [];
  return results
    .filter((result) => result !== mine)
    .flatMap((theirs) =>
      metricNames.flatMap((metric) => {
        const [my, their] = [mine[metric], theirs[metric]];
        if (my === undefined || their === undefined) return [];
        const { moreIsBetter, suffix } = metrics[metric];
        const ratio = significant(moreIsBetter ? my / their : their / my);
        return [{ case: theirs.case, vs: `${theirs.subject}${suffix}`, ratio }];
      }),
    );
}

export function judgeGoals(
  goals: readonly Goal[],
  results: readonly Result[],
): readonly GoalOutcome[] {
  const ratios = ratiosOf(results);
  return goals.map((goal) => {
    if ('p50MsMax' in goal) {
      const value = results.find(({ subject }) => subject === ours)?.p50Ms;
      const met = value !== undefined && value <= goal.p50MsMax;
      return { goal: `p50 <= ${goal.p50MsMax} ms`, value, met };
    }
    if ('p99MsMax' in goal) {
      const value = results.find(({ subject }) => subject === ours)?.p99Ms;
      const met = value !== undefined && value <= goal.p99MsMax;
      return { goal: `p99 <= ${goal.p99MsMax} ms`, value, met };
    }
    const value = ratios.find(({ vs }) => vs === goal.vs)?.ratio;
    const met = value !== undefined && value >= goal.ratioMin;
    return { goal: `ratio >= ${goal.ratioMin} vs ${goal.vs}`, value, met };
  });
}

function metricsIn(rounds: readonly Round[]): readonly Metric[] {
  return metricNames.filter((metric) => valuesOf(rounds, metric).length > 0);
}

/** The largest spread among the measured values of a subject. */
export function spreadOf({ rounds }: SubjectRounds): number {
  return Math.max(...metricsIn(rounds).map((metric) => spread(valuesOf(rounds, metric))));
}

function valuesOf(rounds: readonly Round[], metric: Metric): readonly number[] {
  return rounds.flatMap((round) => {
    const value = (round as Partial<Record<Metric, number>>)[metric];
    return value === undefined ? [] : [value];
  });
}

/** More digits would suggest a precision that the measurement does not have. */
function significant(value: number): number {
  return Number(value.toPrecision(4));
}

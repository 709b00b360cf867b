// Prometheus' text format, version 0.0.4.

import type { MetricDefinition } from './metric-table.ts';

export interface ExposedSeries {
  /** In the order of the metric's labels. */
  readonly values: readonly string[];
  /** Of a histogram: the sum. */
  readonly value: number;
  readonly count: number;
  /** How many fell into each bucket and not into one before it. */
  readonly inBucket: readonly number[];
}

export interface ExposedMetric extends MetricDefinition {
  readonly labels: readonly string[];
  readonly buckets: readonly number[];
  readonly series: readonly ExposedSeries[];
}

/**
 * What a scrape is answered with.
 *
 * @example
 * import { metricsContentType } from 'millrace/telemetry';
 *
 * console.log(metricsContentType); // text/plain; version=0.0.4; charset=utf-8
 */
export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

export function exposeMetrics(metrics: readonly ExposedMetric[]): string {
  const lines: string[] = [];
  for (const metric of metrics) {
    const { name, type, help, series } = metric;
    if (series.length === 0) continue;
    lines.push(`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`);
    lines.push(`# TYPE ${name} ${type}`);
    for (const each of series) {
      if (type === 'histogram') lines.push(...histogramLines(metric, each));
      else lines.push(`${name}${labelText(metric, each)} ${numberText(each.value)}`);
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function histogramLines(metric: ExposedMetric, series: ExposedSeries): string[] {
  const { name, buckets } = metric;
  let below = 0;
  const lines = buckets.map((bound, at) => {
    below += series.inBucket[at] ?? 0;
    return `${name}_bucket${labelText(metric, series, numberText(bound))} ${below}`;
  });
  return [
    ...lines,
    `${name}_bucket${labelText(metric, series, '+Inf')} ${series.count}`,
    `${name}_sum${labelText(metric, series)} ${numberText(series.value)}`,
    `${name}_count${labelText(metric, series)} ${series.count}`,
  ];
}

function labelText(metric: ExposedMetric, { values }: ExposedSeries, le?: string): string {
  const { labels, derived } = metric;
  const parts = labelPairs(labels, values);
  if (derived !== undefined) {
    const source = values[labels.indexOf(derived.from)] ?? '';
    parts.push(...labelPairs(derived.labels, derived.of(source)));
  }
  if (le !== undefined) parts.push(`le="${le}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function labelPairs(labels: readonly string[], values: readonly string[]): string[] {
  return labels.flatMap((label, at) => {
    const value = values[at] ?? '';
    // An empty label is the same as none.
    return value === '' ? [] : [`${label}="${escaped(value)}"`];
  });
}

function escaped(value: string): string {
  return value
    .toWellFormed()
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}

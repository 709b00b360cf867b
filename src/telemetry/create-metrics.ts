// The metrics of the process: declared names and labels, a bounded number of series, and the text formats of
// Prometheus and OpenMetrics. The latter also has exemplars: the correlation id of the last observation of a series.
// Counting is on the hot path, so as much work as possible happens at the scrape.

import type { Attributes, Observer } from '../foundation/observer.ts';
import { type MetricDefinition, metricTable } from './metric-table.ts';

export interface MetricsOptions {
  /** Default: `metricTable`. */
  readonly table?: readonly MetricDefinition[] | undefined;
  readonly limits?: Partial<MetricLimits> | undefined;
}

export interface MetricLimits {
  /** Distinct values per label; further values become `other`. */
  readonly valuesPerLabelMax: number;
  /** Label combinations per metric; further ones become `other` in all labels. */
  readonly seriesPerMetricMax: number;
  readonly valueCharsMax: number;
}

export const metricLimits: MetricLimits = {
  valuesPerLabelMax: 200,
  seriesPerMetricMax: 2_000,
  valueCharsMax: 200,
};

/** A value that a collector returned. */
export interface Sample {
  readonly name: string;
  readonly value: number;
  readonly labels?: Attributes;
}

export interface Metrics {
  readonly observer: Required<Pick<Observer, 'count' | 'gauge' | 'record'>>;
  /** Replaces all series of these metrics with the samples. */
  readonly replace: (names: readonly string[], samples: readonly Sample[]) => void;
  /** Returns all series. Default: the text format of Prometheus, which has no exemplars. */
  readonly expose: (format?: MetricsFormat) => string;
}

export type MetricsFormat = 'prometheus' | 'openmetrics';

const other = 'other';

/**
 * A registry of metrics. Undeclared observations, and those beyond a limit, are counted in `telemetry_dropped_total`,
 * so label values from outside cannot exhaust the memory.
 *
 * @example
 * import { createMetrics } from 'millrace/telemetry';
 *
 * const { observer, expose } = createMetrics();
 * observer.count('events_published_total', { event_type: 'payment.completed.v1' });
 * observer.record('http_request_duration_seconds', 0.012, { method: 'GET', route: '/', status: 200 });
 * console.log(expose()); // # HELP events_published_total …
 */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const limits = { ...metricLimits, ...options.limits };
  const metrics = new Map(
    (options.table ?? metricTable).map((definition) => [
      definition.name,
      createMetric(definition, limits),
    ]),
  );
  const drop = (reason: string): void => {
    const dropped = metrics.get('telemetry_dropped_total')?.seriesOf({ reason });
    if (dropped !== undefined) dropped.value += 1;
  };

  /** Undefined if the metric is not declared, or has another type. */
  function find(name: string, type?: MetricDefinition['type']): Metric | undefined {
    const metric = metrics.get(name);
    if (metric !== undefined && (type === undefined || metric.type === type)) return metric;
    drop('undeclared');
    return undefined;
  }

  function seriesOf(metric: Metric, attributes: Attributes): Series {
    const series = metric.seriesOf(attributes);
    if (metric.isPastLimit()) drop('limit');
    return series;
  }

  return {
    observer: {
      count(name, attributes, by = 1) {
        const metric = find(name, 'counter');
        if (metric === undefined) return;
        // A decreasing counter looks like a restart.
        if (!(by >= 0 && Number.isFinite(by))) return drop('invalid');
        const series = seriesOf(metric, attributes);
        series.value += by;
        keepExemplar(series, 0, by, attributes);
      },
      gauge(name, value, attributes) {
        const metric = find(name, 'gauge');
        if (metric !== undefined) seriesOf(metric, attributes).value = value;
      },
      record(name, value, attributes) {
        const metric = find(name, 'histogram');
        if (metric === undefined) return;
        if (!Number.isFinite(value)) return drop('invalid');
        const series = seriesOf(metric, attributes);
        series.value += value;
        series.count += 1;
        const at = metric.buckets.findIndex((bound) => value <= bound);
        if (at !== -1) series.inBucket[at] = (series.inBucket[at] ?? 0) + 1;
        keepExemplar(series, at === -1 ? metric.buckets.length : at, value, attributes);
      },
    },
    replace(names, samples) {
      for (const name of names) metrics.get(name)?.clear();
      for (const { name, value, labels = {} } of samples) {
        const metric = find(name);
        if (metric !== undefined) seriesOf(metric, labels).value = value;
      }
    },
    expose(format = 'prometheus') {
      if (format === 'prometheus') return [...metrics.values()].flatMap(prometheusLines).join('');
      return [...[...metrics.values()].flatMap(openMetricsLines), '# EOF\n'].join('');
    },
  };
}

interface Series {
  /** The label values, in the order of the labels. */
  readonly values: readonly string[];
  /** The value; of a histogram, the sum. */
  value: number;
  count: number;
  /** Non-cumulative counts per bucket. */
  readonly inBucket: number[];
  /** The last one per bucket, the last bucket without a bound; of a counter, one. */
  readonly exemplars: Exemplar[];
}

interface Exemplar {
  readonly correlationId: string;
  readonly value: number;
}

/** OpenMetrics allows 128 characters for names and values of an exemplar together. */
const exemplarCharsMax = 128 - 'correlation_id'.length;

function keepExemplar(
  { exemplars }: Series,
  at: number,
  value: number,
  { correlationId }: Attributes,
): void {
  if (typeof correlationId !== 'string' || correlationId === '') return;
  if (correlationId.length <= exemplarCharsMax) exemplars[at] = { correlationId, value };
}

interface Metric extends MetricDefinition {
  readonly labels: readonly string[];
  readonly buckets: readonly number[];
  readonly series: ReadonlyMap<string, Series>;
  seriesOf(attributes: Attributes): Series;
  /** Whether the last returned series was a shared `other` series. */
  isPastLimit(): boolean;
  clear(): void;
}

function createMetric(definition: MetricDefinition, limits: MetricLimits): Metric {
  const { labels = [], buckets = [] } = definition;
  /** Attributes may use the names of the log: `integrationType` for `integration_type`. */
  const attributeNames = labels.map((label) =>
    label.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()),
  );
  const all = new Map<string, Series>();
  /** The exposed text of each value, by label. */
  const shown = labels.map(() => new Map<string, string>());
  let isPastLimit = false;

  function shownAs(at: number, value: string): string {
    const known = shown[at];
    const raw = value.length > limits.valueCharsMax ? value.slice(0, limits.valueCharsMax) : value;
    const before = known?.get(raw);
    if (before !== undefined) return before;
    if (known === undefined || known.size >= limits.valuesPerLabelMax) {
      isPastLimit = true;
      return other;
    }
    // This also removes the separator of the series key.
    const text = raw.replaceAll(/\p{Cc}/gu, ' ');
    known.set(raw, text);
    return text;
  }

  function add(key: string): Series {
    const series = {
      values: key.split('\n'),
      value: 0,
      count: 0,
      inBucket: buckets.map(() => 0),
      exemplars: [],
    };
    all.set(key, series);
    return series;
  }

  return {
    ...definition,
    labels,
    buckets,
    series: all,
    seriesOf(attributes) {
      isPastLimit = false;
      let key = '';
      let at = 0;
      for (const label of labels) {
        const value = attributes[label] ?? attributes[attributeNames[at] ?? ''] ?? '';
        key += `${shownAs(at, String(value))}\n`;
        at += 1;
      }
      const found = all.get(key);
      if (found !== undefined) return found;
      if (all.size < limits.seriesPerMetricMax) return add(key);
      isPastLimit = true;
      const rest = `${other}\n`.repeat(labels.length);
      return all.get(rest) ?? add(rest);
    },
    isPastLimit: () => isPastLimit,
    clear() {
      all.clear();
      for (const known of shown) known.clear();
    },
  };
}

/**
 * The content types of a scrape.
 *
 * @example
 * import { metricsContentTypes } from 'millrace/telemetry';
 *
 * console.log(metricsContentTypes.prometheus); // text/plain; version=0.0.4; charset=utf-8
 */
export const metricsContentTypes: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

function prometheusLines(metric: Metric): string[] {
  const { name, type, help, series } = metric;
  if (series.size === 0) return [];
  return [
    `# HELP ${name} ${escapedLine(help)}\n`,
    `# TYPE ${name} ${type}\n`,
    ...sampleLines(metric),
  ];
}

/** OpenMetrics names a counter without its suffix, and knows no counter that has none. */
function openMetricsLines(metric: Metric): string[] {
  const { name, type, help, series } = metric;
  if (series.size === 0) return [];
  const family = type === 'counter' ? name.replace(/_total$/, '') : name;
  const known = type === 'counter' && family === name ? 'unknown' : type;
  return [
    `# HELP ${family} ${escapedText(help)}\n`,
    `# TYPE ${family} ${known}\n`,
    ...sampleLines(metric, known === 'unknown' ? undefined : exemplarText),
  ];
}

function sampleLines(
  metric: Metric,
  exemplarOf: (series: Series, at: number) => string = () => '',
): string[] {
  const { name, type } = metric;
  return [...metric.series.values()].flatMap((each) => {
    if (type === 'histogram') return histogramLines(metric, each, exemplarOf);
    return [`${name}${labelText(metric, each)} ${numberText(each.value)}${exemplarOf(each, 0)}\n`];
  });
}

function histogramLines(
  metric: Metric,
  series: Series,
  exemplarOf: (series: Series, at: number) => string,
): string[] {
  const { name, buckets } = metric;
  let below = 0;
  const bucket = (le: string, count: number, at: number): string =>
    `${name}_bucket${labelText(metric, series, le)} ${count}${exemplarOf(series, at)}\n`;
  const lines = buckets.map((bound, at) => {
    below += series.inBucket[at] ?? 0;
    return bucket(numberText(bound), below, at);
  });
  return [
    ...lines,
    bucket('+Inf', series.count, buckets.length),
    `${name}_sum${labelText(metric, series)} ${numberText(series.value)}\n`,
    `${name}_count${labelText(metric, series)} ${series.count}\n`,
  ];
}

/** A gauge has none, because only counting and recording keep them. */
function exemplarText({ exemplars }: Series, at: number): string {
  const kept = exemplars[at];
  if (kept === undefined) return '';
  const id = escapedText(kept.correlationId.toWellFormed());
  return ` # {correlation_id="${id}"} ${numberText(kept.value)}`;
}

function labelText({ labels, derived }: Metric, { values }: Series, le?: string): string {
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
    // Prometheus treats an empty label as absent.
    return value === '' ? [] : [`${label}="${escapedText(value.toWellFormed())}"`];
  });
}

function escapedText(text: string): string {
  return escapedLine(text).replaceAll('"', '\\"');
}

function escapedLine(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

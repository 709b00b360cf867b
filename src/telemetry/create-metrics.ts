// Metrics in the process: declared names with declared labels, bounded in number, and Prometheus' text
// of them. Counting is on the hot path, so that whatever can wait for the scrape does.

import type { Attributes, Observer } from '../foundation/observer.ts';
import { exposeMetrics, type ExposedMetric, type ExposedSeries } from './expose-metrics.ts';
import { metricTable, type MetricDefinition } from './metric-table.ts';

export interface MetricsOptions {
  /** Default: `metricTable`. */
  readonly table?: readonly MetricDefinition[] | undefined;
  readonly limits?: Partial<MetricLimits> | undefined;
}

export interface MetricLimits {
  /** Different values of one label; further ones are `other`. */
  readonly valuesPerLabelMax: number;
  /** Combinations of labels of one metric; further ones are `other` in all labels. */
  readonly seriesPerMetricMax: number;
  readonly valueCharsMax: number;
}

export const metricLimits: MetricLimits = {
  valuesPerLabelMax: 200,
  seriesPerMetricMax: 2_000,
  valueCharsMax: 200,
};

/** What somebody was asked for. */
export interface Sample {
  readonly name: string;
  readonly value: number;
  readonly labels?: Attributes;
}

export interface Metrics {
  readonly observer: Required<Pick<Observer, 'count' | 'gauge' | 'record'>>;
  /** All series of these metrics become the samples. */
  readonly replace: (names: readonly string[], samples: readonly Sample[]) => void;
  /** In Prometheus' text format. */
  readonly expose: () => string;
}

const other = 'other';

/**
 * A registry of metrics. What is not declared, or past a limit, is counted as
 * `telemetry_dropped_total`: no label value that comes from outside can fill the memory.
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
  const drop = (reason: string): void =>
    metrics.get('telemetry_dropped_total')?.seriesOf({ reason }).add(1);

  function find(name: string, type: MetricDefinition['type'] | undefined): Metric | undefined {
    const metric = metrics.get(name);
    if (metric !== undefined && (type === undefined || metric.definition.type === type)) {
      return metric;
    }
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
        // A counter that falls looks like a restart.
        if (by >= 0 && Number.isFinite(by)) seriesOf(metric, attributes).add(by);
        else drop('invalid');
      },
      gauge(name, value, attributes) {
        const metric = find(name, 'gauge');
        if (metric !== undefined) seriesOf(metric, attributes).set(value);
      },
      record(name, value, attributes) {
        const metric = find(name, 'histogram');
        if (metric === undefined) return;
        if (Number.isFinite(value)) seriesOf(metric, attributes).observe(value);
        else drop('invalid');
      },
    },
    replace(names, samples) {
      for (const name of names) metrics.get(name)?.clear();
      for (const { name, value, labels = {} } of samples) {
        const metric = find(name, undefined);
        if (metric !== undefined) seriesOf(metric, labels).set(value);
      }
    },
    expose: () => exposeMetrics([...metrics.values()].map((metric) => metric.exposed())),
  };
}

interface Series extends ExposedSeries {
  add(by: number): void;
  set(value: number): void;
  observe(value: number): void;
}

interface Metric {
  readonly definition: MetricDefinition;
  seriesOf(attributes: Attributes): Series;
  /** Whether the last one asked for had no place of its own. */
  isPastLimit(): boolean;
  clear(): void;
  exposed(): ExposedMetric;
}

function createMetric(definition: MetricDefinition, limits: MetricLimits): Metric {
  const { labels = [], buckets = [] } = definition;
  /** As the log has them: `integration_type` is told as `integrationType` too. */
  const attributeNames = labels.map((label) =>
    label.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()),
  );
  const all = new Map<string, Series>();
  /** By label, what a value is shown as. */
  let shown = labels.map(() => new Map<string, string>());
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
    // Also keeps what the values are joined by out of them.
    const text = raw.replaceAll(/\p{Cc}/gu, ' ');
    known.set(raw, text);
    return text;
  }

  function seriesOf(attributes: Attributes): Series {
    isPastLimit = false;
    let key = '';
    let at = 0;
    for (const label of labels) {
      const value = attributes[label] ?? attributes[attributeNames[at] ?? ''];
      key += `${shownAs(at, textOf(value))}\n`;
      at += 1;
    }
    const found = all.get(key);
    if (found !== undefined) return found;
    if (all.size < limits.seriesPerMetricMax) return add(key);
    isPastLimit = true;
    const rest = `${other}\n`.repeat(labels.length);
    return all.get(rest) ?? add(rest);
  }

  function add(key: string): Series {
    const series = createSeries(key.split('\n'), buckets);
    all.set(key, series);
    return series;
  }

  return {
    definition,
    seriesOf,
    isPastLimit: () => isPastLimit,
    clear() {
      all.clear();
      shown = labels.map(() => new Map<string, string>());
    },
    exposed: () => ({ ...definition, labels, buckets, series: [...all.values()] }),
  };
}

function createSeries(values: readonly string[], buckets: readonly number[]): Series {
  const inBucket = buckets.map(() => 0);
  let value = 0;
  let count = 0;
  return {
    values,
    inBucket,
    get value() {
      return value;
    },
    get count() {
      return count;
    },
    add(by) {
      value += by;
    },
    set(to) {
      value = to;
    },
    observe(one) {
      value += one;
      count += 1;
      const at = buckets.findIndex((bound) => one <= bound);
      if (at !== -1) inBucket[at] = (inBucket[at] ?? 0) + 1;
    },
  };
}

function textOf(value: string | number | boolean | undefined): string {
  return value === undefined ? '' : String(value);
}

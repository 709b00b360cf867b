// Combines the observers of metrics, traces and logs.

import type { Logger, Observer, Span } from '../foundation/observer.ts';

/**
 * Combines observers into one. Each method exists if one of them has it; the trace context is that of the first
 * span that has one.
 *
 * @example
 * import { combineObservers, createLogger, createMetrics } from 'millrace/telemetry';
 *
 * const observer = combineObservers(createMetrics().observer, { log: createLogger() });
 * observer.count?.('events_published_total', { event_type: 'payment.completed.v1' });
 */
export function combineObservers(...observers: readonly Observer[]): Observer {
  const all = <Part>(pick: (observer: Observer) => Part | undefined): Part[] =>
    observers.map(pick).filter((part) => part !== undefined);
  const counts = all(({ count }) => count);
  const gauges = all(({ gauge }) => gauge);
  const records = all(({ record }) => record);
  const spans = all(({ span }) => span);
  const logs = all(({ log }) => log);
  return {
    ...(counts.length === 0 ? {} : { count: each(counts) }),
    ...(gauges.length === 0 ? {} : { gauge: each(gauges) }),
    ...(records.length === 0 ? {} : { record: each(records) }),
    ...(spans.length === 0
      ? {}
      : { span: (...args) => combineSpans(spans.map((span) => span(...args))) }),
    ...(logs.length === 0 ? {} : { log: combineLogs(logs) }),
  };
}

function each<Args extends readonly unknown[]>(
  calls: readonly ((...args: Args) => void)[],
): (...args: Args) => void {
  const [first] = calls;
  if (calls.length === 1 && first !== undefined) return first;
  return (...args) => {
    for (const call of calls) call(...args);
  };
}

function combineSpans(spans: readonly Span[]): Span {
  const [first] = spans;
  if (spans.length === 1 && first !== undefined) return first;
  return {
    context: spans.find(({ context }) => context !== undefined)?.context,
    set: (attributes) => {
      for (const span of spans) span.set(attributes);
    },
    fail: (error) => {
      for (const span of spans) span.fail(error);
    },
    end: () => {
      for (const span of spans) span.end();
    },
  };
}

function combineLogs(logs: readonly Logger[]): Logger {
  const [first] = logs;
  if (logs.length === 1 && first !== undefined) return first;
  const at =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      for (const log of logs) log[level](fields, message);
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

// Metrics, traces and the log of a process, configured by its environment.

import type { OtlpTracing, OtlpTracingOptions } from '../engines/otel/start-otlp-tracing.ts';
import { type Clock, systemClock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { loadDriver } from '../foundation/load-driver.ts';
import type { Logger, Observer } from '../foundation/observer.ts';
import { type Collector, collectMetrics } from './collect-metrics.ts';
import { processCollector } from './collectors.ts';
import { type LogStream, type LoggerOptions, createLogger } from './create-logger.ts';
import { createMetrics, type MetricsFormat } from './create-metrics.ts';
import type { MetricDefinition } from './metric-table.ts';

export interface TelemetryOptions {
  /**
   * `MILLRACE_LOG_LEVEL` (debug, info, warn, error, silent), `MILLRACE_LOG_FORMAT` (json, text),
   * `MILLRACE_ENV`, and the variables of OpenTelemetry: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
   * `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`. Default: none.
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Default: `MILLRACE_LOG_FORMAT`, else text on a terminal and JSON everywhere else. */
  readonly log?: 'json' | 'text' | undefined;
  /** Default: standard error. */
  readonly stream?: LogStream | undefined;
  /** Names of more fields to leave out of the log. */
  readonly redact?: readonly string[] | undefined;
  /** The version of the program, for the log and the traces. */
  readonly version?: string | undefined;
  /** Default: `metricTable`. */
  readonly table?: readonly MetricDefinition[] | undefined;
  readonly collectors?: readonly Collector[] | undefined;
  readonly clock?: Clock | undefined;
}

export interface Telemetry extends AsyncDisposable {
  /** The observer for the platform and the servers. */
  readonly observer: Observer;
  readonly log: Logger;
  /** Adds collectors: engines are opened after their observer exists. */
  collect(collectors: readonly Collector[]): void;
  /** The body of `GET /metrics`, of the type in `metricsContentTypes`. Never rejects. */
  metrics(format?: MetricsFormat): Promise<string>;
}

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
const formats = ['json', 'text'] as const;

/**
 * Starts the telemetry of a process. Disposing exports the last traces.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { createTelemetry, platformCollectors } from 'millrace/telemetry';
 *
 * await using telemetry = await createTelemetry({ env: process.env });
 * await using platform = await createPlatform({ observer: telemetry.observer });
 * telemetry.collect(platformCollectors(platform));
 * console.log(await telemetry.metrics());
 */
export async function createTelemetry(options: TelemetryOptions = {}): Promise<Telemetry> {
  const { env = {}, clock = systemClock, version } = options;
  await using opened = new AsyncDisposableStack();
  const metrics = createMetrics({ table: options.table });
  const log = opened.use(createLogger({ ...logOptions(options), clock, onDropped }));
  const tracing = hasOtlp(env)
    ? opened.use(await startTracing({ env, log, serviceVersion: version }))
    : undefined;
  const own = opened.use(processCollector());
  let collectors = [own, ...(options.collectors ?? [])];
  let collect = collectMetrics(metrics, collectors, { clock, log });
  const all = opened.move();

  function onDropped(): void {
    metrics.observer.count('log_lines_dropped_total', {});
  }

  return {
    observer: { ...metrics.observer, ...tracing?.observer, log },
    log,
    collect(more) {
      collectors = [...collectors, ...more];
      collect = collectMetrics(metrics, collectors, { clock, log });
    },
    async metrics(format) {
      await collect();
      return metrics.expose(format);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Loads OpenTelemetry on demand, because it is an optional peer dependency. */
async function startTracing(options: OtlpTracingOptions): Promise<OtlpTracing> {
  const adapter = () => import('../engines/otel/start-otlp-tracing.ts');
  return (await loadDriver('@opentelemetry/api', adapter)).startOtlpTracing(options);
}

/** Whether to load OpenTelemetry; the adapter checks the values. */
function hasOtlp(env: NonNullable<TelemetryOptions['env']>): boolean {
  const isOff = env['OTEL_SDK_DISABLED'] === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none';
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  return !isOff && endpoints.some((name) => (env[name] ?? '') !== '');
}

function logOptions({
  env = {},
  log,
  redact = [],
  version,
  stream,
}: TelemetryOptions): LoggerOptions {
  const isTerminal = (stream ?? process.stderr).isTTY === true;
  return {
    stream,
    redact,
    level: oneOf('MILLRACE_LOG_LEVEL', levels, env) ?? 'info',
    format: log ?? oneOf('MILLRACE_LOG_FORMAT', formats, env) ?? (isTerminal ? 'text' : 'json'),
    hasColours: isTerminal && (env['NO_COLOR'] ?? '') === '',
    fields: {
      app: env['OTEL_SERVICE_NAME'] || 'millrace',
      env: env['MILLRACE_ENV'] || undefined,
      version,
    },
  };
}

function oneOf<const Name extends string>(
  field: string,
  names: readonly Name[],
  env: NonNullable<TelemetryOptions['env']>,
): Name | undefined {
  const given = env[field]?.trim().toLowerCase() ?? '';
  if (given === '') return undefined;
  const found = names.find((name) => name === given);
  if (found !== undefined) return found;
  throw new MillraceError('CONFIG_INVALID', `${field} must be one of ${names.join(', ')}`, {
    details: { field },
  });
}

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
  return observers.reduce(combineTwo, {});
}

function combineTwo(one: Observer, other: Observer): Observer {
  return {
    ...one,
    ...other,
    ...(one.count && other.count && { count: inTurn(one.count, other.count) }),
    ...(one.gauge && other.gauge && { gauge: inTurn(one.gauge, other.gauge) }),
    ...(one.record && other.record && { record: inTurn(one.record, other.record) }),
    ...(one.span && other.span && { span: spanInTurn(one.span, other.span) }),
    ...(one.log && other.log && { log: logInTurn(one.log, other.log) }),
  };
}

function inTurn<Args extends readonly unknown[]>(
  a: (...args: Args) => void,
  b: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    a(...args);
    b(...args);
  };
}

type StartSpan = Required<Observer>['span'];

function spanInTurn(startA: StartSpan, startB: StartSpan): StartSpan {
  return (...args) => {
    const [a, b] = [startA(...args), startB(...args)];
    return {
      context: a.context ?? b.context,
      set: inTurn(a.set.bind(a), b.set.bind(b)),
      fail: inTurn(a.fail.bind(a), b.fail.bind(b)),
      end: inTurn(a.end.bind(a), b.end.bind(b)),
    };
  };
}

function logInTurn(a: Logger, b: Logger): Logger {
  const at = (level: keyof Logger) => inTurn(a[level].bind(a), b[level].bind(b));
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

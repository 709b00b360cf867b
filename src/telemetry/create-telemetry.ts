// Metrics, traces and the log of a process, set up by its environment.

import type { OtlpTracing, OtlpTracingOptions } from '../adapters/otel/start-otlp-tracing.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { loadDriver } from '../foundation/load-driver.ts';
import type { Logger, Observer } from '../foundation/observer.ts';
import { collectMetrics, type Collector } from './collect-metrics.ts';
import { combineObservers } from './combine-observers.ts';
import { createLogger, type LoggerOptions, type LogStream } from './create-logger.ts';
import { createMetrics } from './create-metrics.ts';
import type { MetricDefinition } from './metric-table.ts';
import { processCollector } from './process-collector.ts';

export interface TelemetryOptions {
  /**
   * `MILLRACE_LOG_LEVEL` (debug, info, warn, error, silent), `MILLRACE_LOG_FORMAT` (json, text),
   * `MILLRACE_ENV`, and those of OpenTelemetry: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
   * `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`. Default: none.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: what the environment says; else text on a terminal, JSON everywhere else. */
  readonly log?: 'json' | 'text';
  /** Default: `process.stderr`. */
  readonly stream?: LogStream;
  /** Names of further fields that are left out of the log. */
  readonly redact?: readonly string[];
  /** Of the program, for the log and the traces. */
  readonly version?: string;
  /** Default: `metricTable`. */
  readonly table?: readonly MetricDefinition[];
  readonly collectors?: readonly Collector[];
  readonly clock?: Clock;
}

export interface Telemetry extends AsyncDisposable {
  /** For the platform and the servers. */
  readonly observer: Observer;
  readonly log: Logger;
  /** Asks these too from now on: engines are opened after their observer is there. */
  collect(collectors: readonly Collector[]): void;
  /** What `GET /metrics` answers, as `metricsContentType`. Never rejects. */
  metrics(): Promise<string>;
}

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
const formats = ['json', 'text'] as const;

/**
 * Everything that a process tells about itself. Disposing sends the last traces.
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
  const stream: LogStream = options.stream ?? process.stderr;
  await using opened = new AsyncDisposableStack();
  const metrics = createMetrics(options.table === undefined ? {} : { table: options.table });
  const log = opened.use(createLogger({ ...logOptions(options, stream), clock, onDropped }));
  const tracing = hasOtlp(env)
    ? opened.use(
        await startTracing({
          env,
          log,
          ...(version === undefined ? {} : { serviceVersion: version }),
        }),
      )
    : undefined;
  const own = opened.use(processCollector());
  let collectors = [own, ...(options.collectors ?? [])];
  let ask = collectMetrics(metrics, collectors, { clock, log });
  const all = opened.move();

  function onDropped(): void {
    metrics.observer.count('log_lines_dropped_total', {});
  }

  return {
    observer: combineObservers(metrics.observer, { log }, tracing?.observer ?? {}),
    log,
    collect(more) {
      collectors = [...collectors, ...more];
      ask = collectMetrics(metrics, collectors, { clock, log });
    },
    async metrics() {
      await ask();
      return metrics.expose();
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Loaded only now: OpenTelemetry need not be installed where nobody wants traces. */
async function startTracing(options: OtlpTracingOptions): Promise<OtlpTracing> {
  const adapter = () => import('../adapters/otel/start-otlp-tracing.ts');
  return (await loadDriver('@opentelemetry/api', adapter)).startOtlpTracing(options);
}

/** Whether anything of OpenTelemetry is to be loaded; what the value is worth is checked there. */
function hasOtlp(env: NonNullable<TelemetryOptions['env']>): boolean {
  const isOff = env['OTEL_SDK_DISABLED'] === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none';
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  return !isOff && endpoints.some((name) => (env[name] ?? '') !== '');
}

function logOptions(
  { env = {}, log, redact = [], version }: TelemetryOptions,
  stream: LogStream,
): LoggerOptions {
  const byPlace = stream.isTTY === true ? 'text' : 'json';
  return {
    stream,
    redact,
    level: oneOf('MILLRACE_LOG_LEVEL', levels, env) ?? 'info',
    format: log ?? oneOf('MILLRACE_LOG_FORMAT', formats, env) ?? byPlace,
    hasColours: stream.isTTY === true && (env['NO_COLOR'] ?? '') === '',
    fields: {
      app: env['OTEL_SERVICE_NAME'] || 'millrace',
      ...(env['MILLRACE_ENV'] ? { env: env['MILLRACE_ENV'] } : {}),
      ...(version === undefined ? {} : { version }),
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

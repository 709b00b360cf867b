// Exports traces to a collector, configured by the environment variables of OpenTelemetry. Spans that the collector does
// not accept in time are dropped, so that telemetry never delays the application.

import { diag, DiagLogLevel } from '@opentelemetry/api';
import type * as Sdk from '@opentelemetry/sdk-trace';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import type { Logger, Observer } from '../../foundation/observer.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import { otelObserver } from './otel-observer.ts';

export interface OtlpTracingOptions {
  /** The environment, with `OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables of OpenTelemetry. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The service name if `OTEL_SERVICE_NAME` is not set. Default: `millrace`. */
  readonly serviceName?: string | undefined;
  readonly serviceVersion?: string | undefined;
  /** The logger for warnings about failed exports. */
  readonly log?: Logger | undefined;
  /** How long disposal waits for an unreachable collector. Default: 5 s. */
  readonly drainMs?: number | undefined;
}

export interface OtlpTracing extends AsyncDisposable {
  readonly observer: Required<Pick<Observer, 'span'>>;
  /** Sends the spans that wait for the next export. */
  flush(): Promise<void>;
}

const drainMsDefault = 5_000;

/**
 * Sends traces by OTLP over HTTP. Needs `@opentelemetry/sdk-trace`, `@opentelemetry/resources` and
 * `@opentelemetry/exporter-trace-otlp-http`. The exporter reads its headers, timeout and compression from the
 * environment.
 *
 * @example
 * import { startOtlpTracing } from 'millrace/engines/otel';
 * import { createPlatform } from 'millrace/platform';
 *
 * await using tracing = await startOtlpTracing({
 *   env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318', OTEL_SERVICE_NAME: 'shop' },
 * });
 * await using platform = await createPlatform({ observer: tracing.observer });
 */
export async function startOtlpTracing(options: OtlpTracingOptions): Promise<OtlpTracing> {
  const { env, log, drainMs = drainMsDefault } = options;
  const url = otlpTracesUrl(env);
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    loadDriver('@opentelemetry/sdk-trace', () => import('@opentelemetry/sdk-trace')),
    loadDriver(
      '@opentelemetry/exporter-trace-otlp-http',
      () => import('@opentelemetry/exporter-trace-otlp-http'),
    ),
    loadDriver('@opentelemetry/resources', () => import('@opentelemetry/resources')),
  ]);
  if (log !== undefined) {
    const warn = (message: string): void => log.warn({ otel: message }, 'OpenTelemetry');
    diag.setLogger(
      { error: warn, warn, info: warn, debug: warn, verbose: warn },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
  }
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs(env, drainMs) });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes(resourceOf(options)),
    sampler: samplerOf(env, sdk),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  return {
    observer: otelObserver({ tracer: provider.getTracer('millrace', options.serviceVersion) }),
    flush: () => provider.forceFlush(),
    async [Symbol.asyncDispose]() {
      const late = (): never => {
        throw new MillraceError(
          'HANDLER_TIMEOUT',
          `the collector did not respond within ${drainMs} ms`,
        );
      };
      await withinTime(provider.shutdown(), { ms: drainMs, late }).catch((err: unknown) => {
        log?.warn({ err }, 'could not send the last traces');
      });
      if (log !== undefined) diag.disable();
    },
  };
}

/**
 * Derives the deadline of the exporter's retries from `drainMs`, because the retries cannot be cancelled and keep the
 * process alive.
 */
function exportTimeoutMs(env: OtlpTracingOptions['env'], drainMs: number): number {
  const given = env['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT'] ?? env['OTEL_EXPORTER_OTLP_TIMEOUT'] ?? '';
  return Number(given) > 0 ? Number(given) : 2 * drainMs;
}

function otlpTracesUrl(env: OtlpTracingOptions['env']): string {
  const own = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? '';
  const shared = env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '';
  if (own === '' && shared === '') {
    throw invalid('OTEL_EXPORTER_OTLP_ENDPOINT', 'is not set: set it to the URL of a collector');
  }
  const field = own === '' ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const url = own === '' ? `${shared.replace(/\/+$/, '')}/v1/traces` : own;
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw invalid(field, 'must be a URL such as http://localhost:4318');
  }
  const protocol =
    env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] ?? env['OTEL_EXPORTER_OTLP_PROTOCOL'] ?? '';
  // A collector that accepts protobuf over HTTP also accepts JSON.
  if (protocol === 'grpc') {
    throw invalid('OTEL_EXPORTER_OTLP_PROTOCOL', 'must not be grpc: use http/json, port 4318');
  }
  return url;
}

function resourceOf({
  env,
  serviceName = 'millrace',
  serviceVersion,
}: OtlpTracingOptions): Record<string, string> {
  const listed = (env['OTEL_RESOURCE_ATTRIBUTES'] ?? '')
    .split(',')
    .filter((pair) => pair.trim() !== '')
    .map((pair): [string, string] => {
      const at = pair.indexOf('=');
      if (at < 1)
        throw invalid(
          'OTEL_RESOURCE_ATTRIBUTES',
          `has the invalid entry '${pair}': each entry must have the form key=value`,
        );
      return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())];
    });
  const named = env['OTEL_SERVICE_NAME'] ?? '';
  return {
    'service.name': serviceName,
    ...(serviceVersion === undefined ? {} : { 'service.version': serviceVersion }),
    ...Object.fromEntries(listed),
    ...(named === '' ? {} : { 'service.name': named }),
  };
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch (error) {
    throw invalid(
      'OTEL_RESOURCE_ATTRIBUTES',
      `has the invalid value '${value}': percent-encode special characters`,
      error,
    );
  }
}

/** Reads `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`, because the SDK does not. */
function samplerOf(env: OtlpTracingOptions['env'], sdk: typeof Sdk): Sdk.Sampler {
  const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
  const roots: Readonly<Record<string, () => Sdk.Sampler>> = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: () => new sdk.TraceIdRatioBasedSampler(ratioOf(env)),
  };
  const root = roots[name.replace(/^parentbased_/, '')]?.();
  if (root === undefined) {
    const names = Object.keys(roots).flatMap((each) => [each, `parentbased_${each}`]);
    throw invalid('OTEL_TRACES_SAMPLER', `must be one of ${names.join(', ')}, not '${name}'`);
  }
  return name.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root;
}

function ratioOf(env: OtlpTracingOptions['env']): number {
  const ratio = Number(env['OTEL_TRACES_SAMPLER_ARG'] || '1');
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw invalid('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1');
}

function invalid(field: string, reason: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${field} ${reason}`, {
    details: { field },
    cause,
  });
}

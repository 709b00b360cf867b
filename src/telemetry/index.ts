export { collectLimits, type Collector } from './collect-metrics.ts';

export {
  createLogger,
  logLimits,
  type LoggerOptions,
  type LogLevel,
  type LogStream,
} from './create-logger.ts';
export {
  createMetrics,
  metricLimits,
  metricsContentTypes,
  type MetricLimits,
  type Metrics,
  type MetricsFormat,
  type MetricsOptions,
  type Sample,
} from './create-metrics.ts';
export {
  combineObservers,
  createTelemetry,
  type Telemetry,
  type TelemetryOptions,
} from './create-telemetry.ts';
export { metricTable, type MetricDefinition } from './metric-table.ts';
export { platformCollectors, type CollectedPlatform } from './collectors.ts';

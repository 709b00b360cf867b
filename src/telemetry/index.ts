export { collectLimits, type Collector } from './collect-metrics.ts';
export { combineObservers } from './combine-observers.ts';
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
  type MetricLimits,
  type Metrics,
  type MetricsOptions,
  type Sample,
} from './create-metrics.ts';
export { createTelemetry, type Telemetry, type TelemetryOptions } from './create-telemetry.ts';
export { metricsContentType } from './expose-metrics.ts';
export { metricTable, type MetricDefinition } from './metric-table.ts';
export { platformCollectors, type CollectedPlatform } from './platform-collectors.ts';

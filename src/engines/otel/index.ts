export { otelObserver } from './otel-observer.ts';
export {
  startOtlpTracing,
  type OtlpTracing,
  type OtlpTracingOptions,
} from './start-otlp-tracing.ts';

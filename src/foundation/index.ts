export { aborted, systemClock, type Clock } from './clock.ts';
export {
  backoffMs,
  eventFlowBackoff,
  nextAttempt,
  outboxBackoff,
  type BackoffPolicy,
  type NextAttempt,
} from './backoff.ts';
export { parseDuration, type Duration } from './duration.ts';
export type { ErrorFacts, FailureCause } from './failure-cause.ts';
export { errorCodes, type ErrorCode, type ErrorCodeInfo } from './error-codes.ts';
export { hasCode, MillraceError, type ErrorOptions } from './error.ts';
export { createIds, idFromKey, type IdSource, type IdSourceOptions } from './ids.ts';
export {
  createLifecycle,
  type Lifecycle,
  type LifecycleHooks,
  type LifecycleState,
} from './lifecycle.ts';
export { loadDriver } from './load-driver.ts';
export {
  silentObserver,
  type Attributes,
  type Logger,
  type Observer,
  type Span,
  type TraceContext,
} from './observer.ts';
export type { Finding, FindingLevel } from './finding.ts';
export { firstInstantOf, isTimeZone, lastInstantOf, wallTimeAt } from './time-zone.ts';
export { traceOf } from './observer.ts';
export { reserveTokens, takeTokens, type TokenBucket, type TokenRequest } from './token-bucket.ts';

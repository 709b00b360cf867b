export {
  healthLimits,
  type HealthThresholds,
  type MillraceHealth,
  type OutboxHealth,
  type SubscriptionHealth,
} from './decide-health.ts';
export {
  MapToOutbox,
  type MapMethod,
  type MappedMessage,
  type MapToOutboxOptions,
} from './map-to-outbox.ts';
export { MillraceHealthIndicator } from './millrace-health-indicator.ts';
export {
  EVENT_STORE,
  ILOGGER,
  MillraceModule,
  OUTBOX_DISPATCHER,
  OUTBOX_LEDGER,
  type MillraceModuleAsyncOptions,
} from './millrace-module.ts';
export { MillraceMetrics } from './millrace-metrics.ts';
export type {
  MillraceModuleOptions,
  MillraceOutboxOptions,
  MillraceQueueOptions,
  MillraceRoles,
} from './millrace-options.ts';
export { MillraceRuntime } from './millrace-runtime.ts';
export { nestLogger, nestObserver, type ILogger } from './nest-logger.ts';
export {
  OnEvent,
  type EventMethod,
  type HandlerSubscription,
  type OnEventOptions,
} from './on-event.ts';
export { OutboxRepository } from './outbox-repository.ts';

export { deadLetterMessage } from './dead-letter-message.ts';
export {
  decideDelivery,
  killsItsProcess,
  type DeliveryResult,
  type RetrySchedule,
} from './decide-delivery.ts';
export { memoryOutboxLedger } from './memory-outbox-ledger.ts';
export type {
  ClaimOptions,
  ClaimRequest,
  Enqueued,
  OutboxCapabilities,
  OutboxFilter,
  OutboxLedger,
  OutboxOutcome,
  OutboxPage,
  OutboxSource,
  PausedDestination,
  SettleOutcome,
} from './outbox-ledger.ts';
export { outboxLimits } from './outbox-limits.ts';
export type {
  ClaimedMessage,
  EnqueueOutboxProps,
  OutboxClaim,
  OutboxMessage,
  OutboxStatus,
} from './outbox-message.ts';
export {
  startOutboxProjector,
  type IntegrationEventMapper,
  type IntegrationMessage,
  type OutboxProjectorDefinition,
  type OutboxProjectorOptions,
} from './outbox-projector.ts';
export type { Deliver, DeliverContext } from './deliver-message.ts';
export {
  createOutboxDispatcher,
  type OutboxDispatcher,
  type OutboxDispatcherOptions,
} from './outbox-dispatcher.ts';
export { createOutboxMetrics, type OutboxMetricsOptions } from './outbox-metrics.ts';

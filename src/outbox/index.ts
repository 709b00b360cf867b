export { deadLetterMessage } from './dead-letter-message.ts';
export {
  decideDelivery,
  isPoisonous,
  type DeliveryResult,
  type RetrySchedule,
} from './decide-delivery.ts';
export type {
  ClaimOptions,
  Enqueued,
  EnqueuedMessage,
  OutboxCapabilities,
  OutboxFilter,
  OutboxLedger,
  OutboxOutcome,
  OutboxPage,
  OutboxSource,
  PausedDestination,
  Renewed,
  RenewRequest,
  SettleOutcome,
} from './outbox-ledger.ts';
export type { OutboxJob } from '../contracts/outbox-job.ts';
export { outboxLimits } from './outbox-limits.ts';
export type {
  ClaimedMessage,
  DeliveryAttempt,
  Discarded,
  EnqueueOutboxProps,
  OutboxClaim,
  OutboxMessage,
  OutboxMessageHead,
  OutboxStatus,
} from './outbox-message.ts';
export {
  startOutboxProjector,
  type IntegrationEventMapper,
  type IntegrationMessage,
  type OutboxProjectorDefinition,
  type OutboxProjectorRoles,
} from './outbox-projector.ts';
export type { DeliveryQueueOptions } from './delivery-job.ts';
export {
  createQueueDispatcher,
  type QueueDispatcher,
  type QueueDispatcherOptions,
} from './queue-dispatcher.ts';
export { createQueueWorker, type QueueWorker, type QueueWorkerOptions } from './queue-worker.ts';
export type { OnDead } from './report-outcome.ts';
export type { Deliver, DeliverContext } from './attempt-delivery.ts';
export {
  createOutboxDispatcher,
  type OutboxDispatcher,
  type OutboxDispatcherOptions,
} from './outbox-dispatcher.ts';
export { createOutboxMetrics, type OutboxMetricsOptions } from './outbox-metrics.ts';

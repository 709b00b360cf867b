export { createDelivery, deliveryLimits } from './create-delivery.ts';
export type {
  DeliverOptions,
  Delivery,
  DeliveryOptions,
  DestinationSettings,
} from './create-delivery.ts';
export {
  memoryBreakerStore,
  type BreakerProbe,
  type BreakerStore,
  type SharedBreaker,
} from './breaker-store.ts';
export { breakerLimits, type BreakerPolicy, type BreakerState } from './circuit-breaker.ts';
export { idempotencyKeyOf } from '../contracts/idempotency-key.ts';
export type { DeliveryMessage } from './delivery-message.ts';
export {
  errorText,
  errorTextLimits,
  type SentRequest,
  outcomeOfError,
  type Dead,
  type DeliveryOutcome,
  type ReceiverResponse,
  type Retry,
  type Sent,
} from './delivery-outcome.ts';
export type { DeliveryContext, Destination } from './destination.ts';
export {
  httpOutcomeLimits,
  outcomeOfResponse,
  parseRetryAfter,
  type HttpResponse,
} from './http-outcome.ts';
export type { RateLimit } from './rate-limit.ts';
export { inboxLimits, type InboxOptions, type InboxResult } from './inbox.ts';
export {
  disableLimits,
  memoryEndpointHealth,
  type DisablePolicy,
  type EndpointHealth,
  type EndpointHealthStore,
} from './endpoint-health.ts';

export { createCheckpointTracker, type CheckpointTracker } from './rules/checkpoint-tracker.ts';
export type {
  Attempt,
  DeadLetter,
  DeadLetterFilter,
  DeadLetterStatus,
  NewDeadLetter,
} from './dead-letter.ts';
export { decideRetry, type FailedAttempt, type RetryDecision } from './rules/decide-retry.ts';
export {
  decideShards,
  type ShardDecision,
  type ShardFacts,
  type ShardLease,
} from './rules/decide-shards.ts';
export type { GenerationMarks } from './generations.ts';
export { RetryAfter, Snooze, Terminal } from '../foundation/handler-outcome.ts';
export { shardOf } from './rules/lane-of.ts';
export type { RunnerTuning, ShardStatus } from './run/shard-runner.ts';
export {
  subscriptionAdmin,
  type ResetOptions,
  type SubscriptionAdmin,
  type SubscriptionLag,
} from './subscription-admin.ts';
export { subscriptionLimits } from './subscription-limits.ts';
export {
  createSubscriptionRunner,
  startSubscription,
  type SubscriptionOptions,
  type SubscriptionRunner,
  type SubscriptionStatus,
} from './subscription-runner.ts';
export type {
  AcquiredLease,
  AddedDeadLetter,
  CheckpointStore,
  Claim,
  ClaimKey,
  DeadLetterStore,
  EffectTransaction,
  Fence,
  FenceTokens,
  ParkedStream,
  LeaseStore,
  ProcessedEvents,
  ResetReason,
  Settlement,
  SettleResult,
  ShardKey,
  ShardProgress,
  SubscriptionCapabilities,
  SubscriptionRoles,
  SubscriptionState,
  SubscriptionStorage,
  WaitingEvent,
  WaitingEvents,
} from './subscription-storage.ts';
export {
  subscription,
  type BatchContext,
  type BatchHandler,
  type Caused,
  type Handler,
  type HandlerContext,
  type Subscription,
  type SubscriptionDefinition,
} from './subscription.ts';
export { withLeases } from './with-leases.ts';

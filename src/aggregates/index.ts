export type {
  Aggregate,
  AggregateDefinition,
  AggregateEvent,
  DecideContext,
  DecideMap,
  EvolveMap,
  ForgottenEvent,
  Named,
  SnapshotPolicy,
  StreamNaming,
  Upcaster,
} from './aggregate.ts';
export type {
  AggregateAddress,
  AggregateStorage,
  CommandHandler,
  CommandHandlerOptions,
  CommandRequest,
  CommandResult,
  LoadedAggregate,
} from './command-handler.ts';
export { commandHandlerLimits, createCommandHandler } from './create-command-handler.ts';
export { defineAggregate } from './define-aggregate.ts';
export { memoryKeyClaims, type KeyClaims, type KeyUse } from './idempotency.ts';
export { Refused } from './refused.ts';
export { memorySnapshots, type Snapshot, type SnapshotStore } from './snapshot-store.ts';
export { snapshotLimits } from './snapshots.ts';
export { upcast } from './upcast.ts';

export type { AggregateStorage } from './aggregate-storage.ts';
export type {
  Aggregate,
  AggregateEvent,
  DecideContext,
  Named,
  SnapshotPolicy,
} from './aggregate.ts';
export type {
  AggregateDefinition,
  DecideMap,
  EvolveMap,
  ForgottenEvent,
  StreamNaming,
} from './aggregate-definition.ts';
export type {
  AggregateAddress,
  CommandHandler,
  CommandHandlerOptions,
  CommandRequest,
  CommandResult,
  LoadedAggregate,
} from './command-handler.ts';
export { commandHandlerLimits, createCommandHandler } from './create-command-handler.ts';
export { defineAggregate } from './define-aggregate.ts';
export { snapshotLimits } from './encode-state.ts';
export { memoryKeyClaims, type KeyClaims, type KeyUse } from './key-claims.ts';
export { memorySnapshots } from './memory-snapshots.ts';
export { Refused } from './refused.ts';
export type { Snapshot, SnapshotStore } from './snapshot-store.ts';
export { upcast, type Upcaster } from './upcast.ts';

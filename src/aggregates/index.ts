export type { AggregateAddress, CommandRequest, CommandResult } from './attempt-command.ts';
export {
  commandHandlerLimits,
  createCommandHandler,
  type CommandRoles,
  type CommandHandler,
  type CommandHandlerOptions,
  type LoadedAggregate,
} from './create-command-handler.ts';
export {
  defineAggregate,
  type Aggregate,
  type AggregateDefinition,
  type DecideContext,
  type DecideMap,
  type EvolveMap,
  type ForgottenEvent,
  type StreamNaming,
} from './define-aggregate.ts';
export type { KeyClaims, KeyUse } from './idempotency.ts';
export { CommandRejected } from './command-rejected.ts';
export type { Snapshot, SnapshotStore } from './snapshot-store.ts';
export { snapshotLimits, type SnapshotPolicy } from './snapshots.ts';
export { upcast, type AggregateEvent, type Named, type Upcaster } from './upcast.ts';

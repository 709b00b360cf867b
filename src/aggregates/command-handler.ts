// The types of `createCommandHandler`: requests, results and options.

import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import type { IdSource } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Position } from '../store/position.ts';
import type { AggregateEvent } from './aggregate.ts';
import type { KeyClaims } from './idempotency.ts';
import type { SnapshotStore } from './snapshot-store.ts';

export interface AggregateAddress {
  readonly tenant: string;
  readonly id: string;
  readonly signal?: AbortSignal | undefined;
}

export interface CommandRequest<Command extends NewCommand> extends AggregateAddress {
  /** Created by its definition, or checked by `aggregate.parseCommand`. */
  readonly command: Command;
  /**
   * `<tenant>|<service>|<operation>|<naturalKey>`: the command takes effect once, and a duplicate
   * gets the first result. A duplicate of a command that creates an aggregate needs the same `id`:
   * derive it with `idFromKey(idempotencyKey)`.
   */
  readonly idempotencyKey?: string | undefined;
  /** The flow that the command belongs to. Default: a new one. */
  readonly correlationId?: string | undefined;
  /** The event that caused this command, if any. Default: the id of the command. */
  readonly causationId?: string | undefined;
  readonly user?: NonNullable<DomainEventEnvelope['user']> | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** The revision that the caller has seen; any other one is a `VERSION_CONFLICT` without a retry. */
  readonly expected?: number | 'none' | 'exists' | undefined;
}

export interface CommandResult<State, Event extends NewEvent> {
  /** The state at `revision`. */
  readonly state: State;
  readonly events: readonly AggregateEvent<Event>[];
  /** Revision of the last event; without events, of the aggregate (−1: the stream has no events). */
  readonly revision: number;
  /** Position of the last event; undefined without events. */
  readonly position: Position | undefined;
  /** The command is a duplicate: this is the result of the first one. */
  readonly isDuplicate: boolean;
}

export interface LoadedAggregate<State> {
  readonly state: State;
  /** −1: the stream has no events. */
  readonly revision: number;
}

export interface CommandHandler<
  State,
  Event extends NewEvent,
  Command extends NewCommand,
> extends AsyncDisposable {
  handle(request: CommandRequest<Command>): Promise<CommandResult<State, Event>>;
  load(address: AggregateAddress): Promise<LoadedAggregate<State>>;
  /** Waits until scheduled snapshots are saved. False: the deadline passed first. Dispose also waits. */
  flush(options?: { readonly deadlineMs?: number | undefined }): Promise<boolean>;
}

export interface CommandHandlerOptions {
  /** Required for tenants whose names contain a hyphen. */
  readonly tenants?: TenantLookup | undefined;
  readonly ids?: IdSource | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** In [0, 1). */
  readonly random?: (() => number) | undefined;
  readonly snapshots?: SnapshotStore | undefined;
  /** Also rejects an idempotency key that was used with another aggregate. */
  readonly keyClaims?: KeyClaims | undefined;
  /** Maximum number of new decisions after conflicts with concurrent writers. Default: 5. */
  readonly conflictRetriesMax?: number | undefined;
}

/**
 * The ports for command handling that most event stores also implement; pass the store as the options:
 * `createCommandHandler(store, account, store)`.
 */
export interface AggregateStorage {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
}

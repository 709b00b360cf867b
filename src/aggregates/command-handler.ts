// How commands come in and what comes back: the shapes of `createCommandHandler`.

import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import type { IdSource } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Position } from '../store/position.ts';
import type { AggregateEvent } from './aggregate.ts';
import type { KeyClaims } from './key-claims.ts';
import type { SnapshotStore } from './snapshot-store.ts';

export interface AggregateAddress {
  readonly tenant: string;
  readonly id: string;
  readonly signal?: AbortSignal;
}

export interface CommandRequest<Command extends NewCommand> extends AggregateAddress {
  /** Made by its definition, or checked by `aggregate.parseCommand`. */
  readonly command: Command;
  /**
   * `<tenant>|<service>|<operation>|<naturalKey>`: the command has its effect once, and a repeat
   * gets the first result. A command that creates an aggregate needs the same `id` again, too:
   * `idFromKey(idempotencyKey)` makes one.
   */
  readonly idempotencyKey?: string;
  /** The flow that this belongs to. Default: a new one. */
  readonly correlationId?: string;
  /** The event that led to this command, when one did. Default: the command's own id. */
  readonly causationId?: string;
  readonly user?: NonNullable<DomainEventEnvelope['user']>;
  readonly headers?: Readonly<Record<string, unknown>>;
  /** What the caller has seen; anything else is a `VERSION_CONFLICT`, and is not tried again. */
  readonly expected?: number | 'none' | 'exists';
}

export interface CommandResult<State, Event extends NewEvent> {
  /** At `revision`. */
  readonly state: State;
  readonly events: readonly AggregateEvent<Event>[];
  /** Of the last event; without events, of the aggregate (−1: nothing has happened yet). */
  readonly revision: number;
  /** Of the last event; undefined when nothing happened. */
  readonly position: Position | undefined;
  /** The command had been handled before: this is what it did then. */
  readonly repeated: boolean;
}

export interface LoadedAggregate<State> {
  readonly state: State;
  /** −1: nothing has happened yet. */
  readonly revision: number;
}

export interface CommandHandler<
  State,
  Event extends NewEvent,
  Command extends NewCommand,
> extends AsyncDisposable {
  handle(request: CommandRequest<Command>): Promise<CommandResult<State, Event>>;
  load(address: AggregateAddress): Promise<LoadedAggregate<State>>;
  /** Waits for snapshots under way. False: the deadline came first. Dispose does the same. */
  flush(options?: { readonly deadlineMs?: number }): Promise<boolean>;
}

export interface CommandHandlerOptions {
  /** Tenants whose names hold a hyphen must be known. */
  readonly tenants?: TenantLookup;
  readonly ids?: IdSource;
  readonly clock?: Clock;
  readonly observer?: Observer;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly snapshots?: SnapshotStore;
  /** Also refuses an idempotency key that was used with another aggregate. */
  readonly keyClaims?: KeyClaims;
  /** How often a command is decided again because somebody else was faster. Default: 5. */
  readonly conflictRetriesMax?: number;
}

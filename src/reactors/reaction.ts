// A command that follows from an event: who it is for, and who it is when it comes again.

import type { CommandRequest } from '../aggregates/command-handler.ts';
import { buildIdempotencyKey } from '../contracts/idempotency-key.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { idFromKey } from '../foundation/ids.ts';
import { traceOf } from '../foundation/trace-of.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

export interface Reaction {
  /** Of the aggregate that the command is for. */
  readonly id: string;
  readonly command: NewCommand;
  /** Default: the event's. */
  readonly tenant?: string;
  /** Tells commands of one type for one aggregate apart. Default: their order. */
  readonly name?: string;
  readonly user?: NonNullable<DomainEventEnvelope['user']>;
}

/** How commands leave: `dispatchCommands` makes one from command handlers. */
export type SendCommand = (request: CommandRequest<NewCommand>) => Promise<unknown>;

/** An event that was recorded, with its payload's type. */
export type RecordedEventOf<Event extends NewEvent> = Event extends NewEvent
  ? RecordedEvent<Event['payload']> & { readonly type: Event['type'] }
  : never;

/** The part of an event's definition that is needed here. */
export interface EventNamed {
  readonly type: string;
  parse(payload: unknown): unknown;
}

export interface ReactionSource {
  readonly service: string;
  /** Without a version: a new version of a reactor has the same intents as the one before. */
  readonly reactor: string;
  /** Sets those apart that follow from a refusal. */
  readonly branch?: string;
  /** The trace that goes on, as headers. Default: the event's. */
  readonly trace?: Readonly<Record<string, string>>;
}

/**
 * The requests for the reactions to an event. The key says what is wanted of whom because of which
 * event, not the place in the list: a handler that returns less or more than it did the last time
 * still gives the same command the same key.
 */
export function toRequests(
  event: RecordedEvent,
  reactions: readonly Reaction[],
  { service, reactor, branch = '', trace }: ReactionSource,
): readonly CommandRequest<NewCommand>[] {
  // Only the trace: other headers say something about the event that need not hold for what follows.
  const headers = { ...(trace ?? traceOf(event.headers)) };
  const counts = new Map<string, number>();
  return reactions.map(({ id, command, tenant = event.tenant, name, user }) => {
    const alike = `${command.type} ${tenant} ${id} ${name ?? ''}`;
    const count = counts.get(alike) ?? 0;
    counts.set(alike, count + 1);
    const intent = idFromKey(`${event.stream} ${event.eventId} ${alike} ${count} ${branch}`);
    return {
      tenant,
      id,
      command,
      idempotencyKey: buildIdempotencyKey({
        tenant,
        service,
        operation: reactor,
        naturalKey: intent,
      }),
      correlationId: event.correlationId,
      causationId: event.eventId,
      headers,
      ...(user === undefined ? {} : { user }),
    };
  });
}

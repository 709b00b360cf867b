// Commands caused by events: their idempotency keys, how they are sent, and their outcomes.

import type { CommandRequest } from '../aggregates/attempt-command.ts';
import { buildIdempotencyKey } from '../contracts/idempotency-key.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import { traceOf } from '../foundation/observer.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';

export interface Reaction {
  /** Id of the aggregate that receives the command. */
  readonly id: string;
  readonly command: NewCommand;
  /** The category of the aggregate, if several accept this command type: `banking.account.v2`. */
  readonly aggregate?: string | undefined;
  /** Default: the event's. */
  readonly tenant?: string | undefined;
  /** Distinguishes several commands of one type for one aggregate. Default: their order. */
  readonly name?: string | undefined;
  readonly user?: NonNullable<DomainEventEnvelope['user']> | undefined;
}

/** Sends a command; `dispatchCommands` creates this function from command handlers. */
export type SendCommand = (request: CommandRequest<NewCommand>) => Promise<unknown>;

/** A recorded event with the type of its payload. */
export type RecordedEventOf<Event extends NewEvent> = Event extends NewEvent
  ? RecordedEvent<Event['payload']> & { readonly type: Event['type'] }
  : never;

/** The part of an event definition that reactors need. */
export interface EventNamed {
  readonly type: string;
  parse(payload: unknown): unknown;
}

export interface ReactionSource {
  readonly service: string;
  /** Without a version: a new version of a reactor sends the same commands with the same keys. */
  readonly reactor: string;
  /** Distinguishes the commands that replace a rejected one. */
  readonly branch?: string | undefined;
  /** The trace context for the commands, as headers. Default: the event's. */
  readonly trace?: Readonly<Record<string, string>> | undefined;
}

/**
 * The command requests for the reactions to an event. The idempotency key depends on event, command and
 * target, not on the index in the list: a handler that returns fewer or more reactions the next time
 * still gives the same command the same key.
 */
export function toRequests(
  event: RecordedEvent,
  reactions: readonly Reaction[],
  { service, reactor, branch = '', trace }: ReactionSource,
): readonly CommandRequest<NewCommand>[] {
  // Copy only the trace context: other headers of the event may not apply to the command.
  const headers = { ...(trace ?? traceOf(event.headers)) };
  const counts = new Map<string, number>();
  return reactions.map(({ id, command, aggregate, tenant = event.tenant, name, user }) => {
    const receiver = aggregate === undefined ? command.type : `${aggregate}/${command.type}`;
    const target = `${receiver} ${tenant} ${id} ${name ?? ''}`;
    const count = counts.get(target) ?? 0;
    counts.set(target, count + 1);
    const intent = idFromKey(`${event.stream} ${event.eventId} ${target} ${count} ${branch}`);
    return {
      tenant,
      id,
      command,
      aggregate,
      idempotencyKey: buildIdempotencyKey({
        tenant,
        service,
        operation: reactor,
        naturalKey: intent,
      }),
      correlationId: event.correlationId,
      causationId: event.eventId,
      headers,
      user,
    };
  });
}

/** A command without effect; the denial is final. */
export interface CommandDenied {
  /** `rejected`: by a business rule of the aggregate, or its person was forgotten. `failed`: no handler accepts the command. */
  readonly kind: 'rejected' | 'failed';
  readonly reason: string;
  readonly message: string;
  readonly cause: unknown;
}

/** No retry can change these. */
const finalCodes = ['COMMAND_AMBIGUOUS', 'COMMAND_KEY_REUSED', 'COMMAND_UNKNOWN'] as const;

export type CommandOutcome = { readonly kind: 'accepted' } | CommandDenied;

/** Sends a command. Rejects if it is unknown whether the command took effect: send it again then. */
export async function askCommand(
  send: SendCommand,
  request: Parameters<SendCommand>[0],
): Promise<CommandOutcome> {
  try {
    await send(request);
    return { kind: 'accepted' };
  } catch (cause) {
    if (hasCode(cause, 'COMMAND_REJECTED')) {
      const { reason } = cause.details;
      const known = typeof reason === 'string' ? reason : cause.code;
      return { kind: 'rejected', reason: known, message: cause.message, cause };
    }
    if (hasCode(cause, 'SUBJECT_FORGOTTEN')) {
      return { kind: 'rejected', reason: cause.code, message: cause.message, cause };
    }
    const final = finalCodes.find((code) => hasCode(cause, code));
    if (final !== undefined) {
      return { kind: 'failed', reason: final, message: (cause as Error).message, cause };
    }
    if (cause instanceof Error && cause.name === 'Terminal') {
      return { kind: 'failed', reason: 'terminal', message: cause.message, cause };
    }
    throw cause;
  }
}

/** A command handler of any aggregate, as returned by `createCommandHandler`. */
export interface CommandReceiver {
  handle(request: CommandRequest<never>): Promise<unknown>;
}

/**
 * Sends each command to the handler of its aggregate: `account.deposit` to `account`. Handlers of several aggregates with one
 * name have their categories as keys (`banking.account.v2`), which the commands name.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createCommandHandler, defineAggregate } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { dispatchCommands } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const rung = defineEvent('bell.rung.v1', z.object({}));
 * const ring = defineCommand('bell.ring', z.object({}));
 * const bell = defineAggregate({
 *   bc: 'house',
 *   name: 'bell',
 *   version: 1,
 *   events: [rung],
 *   commands: [ring],
 *   initial: 0,
 *   evolve: { 'bell.rung.v1': (times) => times + 1 },
 *   decide: { 'bell.ring': () => rung({}) },
 * });
 *
 * await using db = openMemory();
 * const send = dispatchCommands({ bell: createCommandHandler(db, bell) });
 * await send({ tenant: 'core', id: 'door', command: ring({}) });
 */
export function dispatchCommands(handlers: Readonly<Record<string, CommandReceiver>>): SendCommand {
  const known = new Map(Object.entries(handlers));
  return async (request) => {
    const { type } = request.command;
    const receiver =
      known.get(request.aggregate ?? '') ?? known.get(type.slice(0, type.indexOf('.')));
    if (receiver === undefined) {
      throw new MillraceError(
        'COMMAND_UNKNOWN',
        `unknown command '${type}': no command handler accepts it`,
        {
          details: { command: type, aggregates: [...known.keys()] },
        },
      );
    }
    // The key of the handler guarantees that it accepts commands of this aggregate.
    return receiver.handle(request as CommandRequest<never>);
  };
}

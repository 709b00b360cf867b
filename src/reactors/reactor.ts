// A reactor: for each event type, the commands that it causes.

import { parseSubscriptionName } from '../contracts/subscription-name.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { Position } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { SubscriptionDefinition } from '../subscriptions/subscription.ts';
import type { EventNamed, Reaction, RecordedEventOf } from './reaction.ts';

export interface ReactorContext {
  /** Counts from 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}

type Reactions = readonly Reaction[] | Reaction | undefined;

/** For each event type, the resulting commands. A handler must return the same commands for the same event. */
export type ReactorMap<Event extends NewEvent> = {
  readonly [Type in Event['type']]: (
    event: RecordedEventOf<Extract<Event, { readonly type: Type }>>,
    context: ReactorContext,
  ) => Reactions | Promise<Reactions>;
};

/** The aggregate rejected a command. */
export interface Rejection {
  readonly event: RecordedEvent;
  readonly reaction: Reaction;
  readonly reason: string;
  readonly message: string;
  /** The commands of this event that were accepted before. */
  readonly accepted: readonly Reaction[];
}

/**
 * `ignore`: continue with the next command. `dead-letter`: the event becomes a dead letter, and its
 * later commands are not sent. A function: its commands are sent instead of the later ones; if one of
 * them is rejected too, the event becomes a dead letter.
 */
export type RejectionPolicy =
  | 'ignore'
  | 'dead-letter'
  | ((rejection: Rejection) => readonly Reaction[] | Promise<readonly Reaction[]>);

/** Options of the subscription: see `subscription`. */
export type ReactorTuning = Pick<
  SubscriptionDefinition,
  'inFlightMax' | 'lanes' | 'onDeadLetter' | 'retry' | 'shards' | 'timeoutMs'
>;

/** Selects events in addition to their types. */
export type ReactorFilter = Omit<EventFilter, 'types' | 'typePrefixes' | 'typePattern' | 'system'>;

export interface ReactorDefinition<
  Definitions extends readonly EventNamed[],
> extends ReactorTuning {
  /** `sub:<service>:<name>:v<n>`. */
  readonly name: string;
  readonly events: Definitions;
  /** Where a new subscription starts: with the first event, or with the next one appended (`end`). */
  readonly from: 'start' | 'end' | Position;
  readonly on: ReactorMap<EventOf<Definitions[number]>>;
  readonly onRejected: RejectionPolicy;
  /**
   * How several commands of one event are sent: each after the previous one is accepted, or all
   * concurrently. Default: `in-order`.
   */
  readonly sends?: 'in-order' | 'together' | undefined;
  /** In addition to the event types. */
  readonly filter?: ReactorFilter | undefined;
}

/** The checked definition, for `startReactor` and `givenReactor`. */
export interface Reactor {
  readonly name: string;
  readonly service: string;
  readonly reactor: string;
  readonly from: 'start' | 'end' | Position;
  readonly filter: EventFilter;
  readonly onRejected: RejectionPolicy;
  readonly sends: 'in-order' | 'together';
  readonly tuning: ReactorTuning;
  /** The commands caused by an event. */
  react(event: RecordedEvent, context: ReactorContext): Promise<readonly Reaction[]>;
}

/**
 * Defines a reactor; `startReactor` runs it.
 *
 * @example
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { reactor } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
 * const greet = defineCommand('letter.send', z.object({ to: z.string() }));
 * const greetings = reactor({
 *   name: 'sub:banking:greetings:v1',
 *   events: [opened],
 *   from: 'end',
 *   onRejected: 'dead-letter',
 *   on: {
 *     'account.opened.v1': ({ payload, aggregate }) => ({
 *       id: `welcome-${aggregate.id}`,
 *       command: greet({ to: payload.owner }),
 *     }),
 *   },
 * });
 */
export function reactor<const Definitions extends readonly EventNamed[]>(
  definition: ReactorDefinition<Definitions>,
): Reactor {
  const { name, events, from, on, onRejected, filter, sends = 'in-order', ...tuning } = definition;
  const parsed = parseSubscriptionName(name);
  const handlers = new Map(Object.entries(on as Readonly<Record<string, AnyHandler>>));
  const types = events.map(({ type }) => type);
  const missing = types.find((type) => !handlers.has(type));
  if (types.length === 0 || missing !== undefined || handlers.size !== new Set(types).size) {
    const problem =
      missing === undefined ? 'events and handlers differ' : `no handler for ${missing}`;
    throw new MillraceError('REACTOR_INVALID', `${name}: ${problem}`, {
      details: { name, types, handled: [...handlers.keys()] },
    });
  }
  if (sends === 'together' && typeof onRejected === 'function') {
    // The replacement commands depend on which commands were accepted before.
    throw new MillraceError(
      'REACTOR_INVALID',
      `${name}: sends 'together' cannot be combined with an onRejected function`,
      {
        details: { name, field: 'sends' },
      },
    );
  }
  return {
    name,
    tuning,
    sends,
    service: parsed.service,
    reactor: parsed.name,
    from,
    filter: { ...filter, types },
    onRejected,
    async react(event, context) {
      const reactions = await handlers.get(event.type)?.(event, context);
      if (reactions === undefined) return [];
      return isList(reactions) ? reactions : [reactions];
    },
  };
}

type AnyHandler = (event: unknown, context: ReactorContext) => Reactions | Promise<Reactions>;

function isList(reactions: readonly Reaction[] | Reaction): reactions is readonly Reaction[] {
  return Array.isArray(reactions);
}

// What a reactor is: for each kind of event, the commands that follow from it.

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
  /** From 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}

type Reactions = readonly Reaction[] | Reaction | undefined;

/** By event type, what follows. The same event must lead to the same commands, whenever it is asked. */
export type ReactorMap<Event extends NewEvent> = {
  readonly [Type in Event['type']]: (
    event: RecordedEventOf<Extract<Event, { readonly type: Type }>>,
    context: ReactorContext,
  ) => Reactions | Promise<Reactions>;
};

/** The aggregate said no. */
export interface Refusal {
  readonly event: RecordedEvent;
  readonly reaction: Reaction;
  readonly reason: string;
  readonly message: string;
  /** What was sent and accepted for this event before. */
  readonly accepted: readonly Reaction[];
}

/**
 * `ignore`: no is an answer, the next command goes out. `dead-letter`: somebody must look at it;
 * later commands of the event are not sent. A function: these commands go out instead of the later
 * ones; if one of them is refused too, it is a dead letter.
 */
export type RefusalPolicy =
  | 'ignore'
  | 'dead-letter'
  | ((refusal: Refusal) => readonly Reaction[] | Promise<readonly Reaction[]>);

/** How its subscription runs: see `subscription`. */
export type ReactorTuning = Pick<
  SubscriptionDefinition,
  'inFlightMax' | 'lanes' | 'onDeadLetter' | 'retry' | 'shards' | 'timeoutMs'
>;

export interface ReactorDefinition<
  Definitions extends readonly EventNamed[],
> extends ReactorTuning {
  /** `sub:<service>:<name>:v<n>`. */
  readonly name: string;
  readonly events: Definitions;
  /** Where a new one begins: with what is appended from now on, or with all that ever happened. */
  readonly from: 'now' | 'start' | Position;
  readonly on: ReactorMap<EventOf<Definitions[number]>>;
  readonly onRefused: RefusalPolicy;
  /**
   * Several commands of one event: each when the one before it was accepted, or all at once, where none of
   * them needs another. Default: `in-order`.
   */
  readonly sends?: 'in-order' | 'together';
  /** Beside the types. */
  readonly filter?: Omit<EventFilter, 'types' | 'typePrefixes' | 'typePattern' | 'system'>;
}

/** As `startReactor` and `givenReactor` take it. */
export interface Reactor {
  readonly name: string;
  readonly service: string;
  readonly reactor: string;
  readonly from: 'start' | 'end' | Position;
  readonly filter: EventFilter;
  readonly onRefused: RefusalPolicy;
  readonly sends: 'in-order' | 'together';
  readonly tuning: ReactorTuning;
  /** The commands that follow from an event of one of its types. */
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
 *   from: 'now',
 *   onRefused: 'dead-letter',
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
  const { name, events, from, on, onRefused, filter, sends = 'in-order', ...tuning } = definition;
  const parsed = parseSubscriptionName(name);
  const handlers = new Map(Object.entries(on as Readonly<Record<string, AnyHandler>>));
  const types = events.map(({ type }) => type);
  const missing = types.find((type) => !handlers.has(type));
  if (types.length === 0 || missing !== undefined || handlers.size !== new Set(types).size) {
    const what = missing === undefined ? 'the events it handles' : `what follows from ${missing}`;
    throw new MillraceError('REACTOR_INVALID', `${name} does not say ${what}`, {
      details: { name, types, handled: [...handlers.keys()] },
    });
  }
  if (sends === 'together' && typeof onRefused === 'function') {
    // What goes out instead depends on what was accepted before.
    throw new MillraceError('REACTOR_INVALID', `${name} sends together, and has commands instead`, {
      details: { name, field: 'sends' },
    });
  }
  return {
    name,
    tuning,
    sends,
    service: parsed.service,
    reactor: parsed.name,
    from: from === 'now' ? 'end' : from,
    filter: { ...filter, types },
    onRefused,
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

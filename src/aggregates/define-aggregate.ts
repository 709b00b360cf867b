// An aggregate from its events, its commands and two maps of pure functions: what happens, and what
// it means. Maps become functions here, and everything that can be wrong with them is said at once.

import type { CommandOf } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import { buildCategory, buildStreamName } from '../contracts/stream-name.ts';
import { isForgotten } from '../store/erasure.ts';
import type { Aggregate, AggregateEvent, DecideContext, Named } from './aggregate.ts';
import type { AggregateDefinition, ForgottenEvent } from './aggregate-definition.ts';
import { aggregateError } from './aggregate-error.ts';
import { checkNames, checkSnapshotPolicy, handlersOf } from './check-definition.ts';
import { deepFreeze } from './deep-freeze.ts';
import { createInterpreter, unreadable } from './interpret-event.ts';

/**
 * Defines an aggregate. `decide` says what happens and may throw `Refused`; `evolve` says what it
 * means. Both are pure: time, ids and the caller come with the context.
 *
 * @example
 * import { defineAggregate, Refused } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { z } from 'zod';
 *
 * const money = z.object({ amount: z.number().positive() });
 * const deposited = defineEvent('account.deposited.v1', money);
 * const withdrawn = defineEvent('account.withdrawn.v1', money);
 * const deposit = defineCommand('account.deposit', money);
 * const withdraw = defineCommand('account.withdraw', money);
 *
 * const account = defineAggregate({
 *   bc: 'banking',
 *   name: 'account',
 *   version: 1,
 *   events: [deposited, withdrawn],
 *   commands: [deposit, withdraw],
 *   initial: { balance: 0 },
 *   evolve: {
 *     'account.deposited.v1': (state, { amount }) => ({ balance: state.balance + amount }),
 *     'account.withdrawn.v1': (state, { amount }) => ({ balance: state.balance - amount }),
 *   },
 *   decide: {
 *     'account.deposit': ({ amount }) => deposited({ amount }),
 *     'account.withdraw': ({ amount }, { balance }) => {
 *       if (amount > balance) throw new Refused('insufficient-funds', `only ${balance} left`);
 *       return withdrawn({ amount });
 *     },
 *   },
 * });
 */
export function defineAggregate<
  const Bc extends string,
  const Name extends string,
  const Events extends readonly Named<Name>[],
  const Commands extends readonly Named<Name>[],
  State,
>(
  definition: AggregateDefinition<Bc, Name, Events, Commands, State>,
): Aggregate<State, EventOf<Events[number]>, CommandOf<Commands[number]>> {
  type Event = EventOf<Events[number]>;
  type Command = CommandOf<Commands[number]>;
  const { bc, version, initial, forgotten, dataSubject } = definition;
  const name: string = definition.name;
  const complain = (reason: string): Error =>
    aggregateError('AGGREGATE_INVALID', `aggregate '${name}': ${reason}`, {
      details: { aggregate: name, reason },
    });

  buildCategory<string, string>(bc, name, version);
  const events = checkNames(name, definition.events, complain);
  const commands = checkNames(name, definition.commands, complain);
  type Decider = (
    payload: unknown,
    state: State,
    context: DecideContext,
  ) => Event | readonly Event[];
  type Evolver = (state: State, payload: unknown, event: AggregateEvent<Event>) => State;
  // The compiler has seen each handler with its own payload; from here on they go by name.
  const deciders = handlersOf<Decider>('decide', definition.decide, commands, complain);
  const evolvers = handlersOf<Evolver>('evolve', definition.evolve, events, complain);
  const { upcasters = [], unknownEvents = 'fail' } = definition;
  const interpret = createInterpreter<Event>({ events, upcasters, unknownEvents, complain });

  return {
    bc,
    name,
    version,
    streamOf:
      definition.streamName ??
      ((tenant, id, tenants) =>
        buildStreamName<string, string>(bc, name, version, tenant, id, tenants)),
    commands: [...commands.values()],
    events: [...events.values()],
    initial: deepFreeze(initial),
    snapshot: checkSnapshotPolicy(definition.snapshot, complain),
    ...(dataSubject === undefined ? {} : { dataSubject }),
    interpret,

    parseCommand(command) {
      const known = commands.get(command.type);
      if (known === undefined) throw unknownCommand(name, command.type);
      return { type: command.type, payload: known.parse(command.payload) } as Command;
    },

    decide(command, state, context) {
      const decider = deciders.get(command.type);
      if (decider === undefined) throw unknownCommand(name, command.type);
      const decided = decider(command.payload, state, context);
      const happened = isList(decided) ? decided : [decided];
      // An event that nobody can read would make the whole stream unreadable: not even skipped ones.
      for (const { type } of happened) if (!events.has(type)) throw undecidable(command.type, type);
      return happened;
    },

    evolve(state, event) {
      const known = interpret(event);
      const evolver = known === undefined ? undefined : evolvers.get(known.type);
      if (known === undefined || evolver === undefined) return state;
      try {
        if (!isForgotten(known.payload)) return evolver(state, known.payload, known);
        if (forgotten === undefined) return state;
        return forgotten(state, known as AggregateEvent<ForgottenEvent>);
      } catch (error) {
        throw unreadable(event, 'could not be applied', error);
      }
    },
  };
}

function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

function unknownCommand(aggregate: string, type: string): Error {
  return aggregateError('COMMAND_UNKNOWN', `aggregate '${aggregate}' has no command '${type}'`, {
    details: { aggregate, type },
  });
}

function undecidable(command: string, type: string): Error {
  return aggregateError(
    'EVENT_UNKNOWN',
    `'${command}' decided '${type}', which is no event of its aggregate`,
    { details: { command, type } },
  );
}

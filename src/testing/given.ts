// Given-when-then tests of aggregates: past events, a command, and the resulting events.

import { AssertionError } from 'node:assert';
import { inspect } from 'node:util';
import { assertEqual } from './assertions.ts';
import type { Aggregate, DecideContext } from '../aggregates/define-aggregate.ts';
import type { AggregateEvent } from '../aggregates/upcast.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import { createEnvelope, type NewEvent } from '../contracts/envelope.ts';
import { buildStreamName } from '../contracts/stream-name.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';

export interface ThenState<State> {
  /** Fails unless the final state equals this one or satisfies the predicate. */
  thenState(expected: State | ((state: State) => boolean)): ThenState<State>;
}

export interface When<State, Event extends NewEvent> extends ThenState<State> {
  /** Fails unless exactly these events happen, in this order; `[]`: nothing happens. */
  then(expected: readonly Event[]): ThenState<State>;
  /** Fails unless the command is rejected with this reason, code or matching message. */
  thenRejected(expected?: string | RegExp): void;
}

export interface Given<
  State,
  Event extends NewEvent,
  Command extends NewCommand,
> extends ThenState<State> {
  /** Runs the decision with a fixed context, in which these parts are replaced. */
  when(command: Command, context?: Partial<DecideContext>): When<State, Event>;
}

/**
 * Starts with past events, of current or older versions. Needs no store and does not wait.
 *
 * @example
 * import { defineAggregate } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { given } from 'millrace/testing';
 * import { z } from 'zod';
 *
 * const opened = defineEvent('door.opened.v1', z.object({}));
 * const open = defineCommand('door.open', z.object({}));
 * const door = defineAggregate({
 *   bc: 'house',
 *   name: 'door',
 *   version: 1,
 *   events: [opened],
 *   commands: [open],
 *   initial: { isOpen: false },
 *   evolve: { 'door.opened.v1': () => ({ isOpen: true }) },
 *   decide: { 'door.open': (_payload, { isOpen }) => (isOpen ? [] : opened({})) },
 * });
 *
 * given(door, [])
 *   .when(open({}))
 *   .then([opened({})])
 *   .thenState({ isOpen: true });
 */
export function given<State, Event extends NewEvent, Command extends NewCommand>(
  aggregate: Aggregate<State, Event, Command>,
  history: readonly NewEvent[],
): Given<State, Event, Command> {
  const fold = (from: State, events: readonly NewEvent[], revision: number): State =>
    events.reduce(
      (state, event, index) =>
        aggregate.evolve(state, aggregateEvent(aggregate, event, revision + index)),
      from,
    );
  const before = fold(aggregate.initial, history, 0);

  return {
    ...checksOf(before),
    when(command, context) {
      let outcome: Outcome<Event>;
      try {
        const events = aggregate.decide(command, before, {
          ...fixedContext(history.length - 1),
          ...context,
        });
        outcome = { events };
      } catch (error) {
        outcome = { error };
      }
      return decided(outcome, (events) => fold(before, events, history.length));
    },
  };
}

type Outcome<Event> = { readonly events: readonly Event[] } | { readonly error: unknown };

function decided<State, Event extends NewEvent>(
  outcome: Outcome<Event>,
  stateAfter: (events: readonly Event[]) => State,
): When<State, Event> {
  const then = (expected: readonly Event[]): ThenState<State> => {
    // `await`, or a test runner, calls `then` with a function.
    if (typeof expected === 'function') {
      throw new TypeError('given(…).when(…) is not a promise: end it with .then([…])');
    }
    if ('error' in outcome) throw notRejected(outcome.error, `expected ${show(expected)}`, then);
    assertEqual(outcome.events.map(plain), expected.map(plain), then);
    return checksOf(stateAfter(outcome.events));
  };

  const thenRejected = (expected?: string | RegExp): void => {
    const wanted = `expected a rejection${expected === undefined ? '' : ` with ${show(expected)}`}`;
    if ('events' in outcome) {
      const message = `${wanted}, but this happened: ${show(outcome.events.map(plain))}`;
      throw new AssertionError({ message, stackStartFn: thenRejected });
    }
    if (!isRejection(outcome.error, expected))
      throw notRejected(outcome.error, wanted, thenRejected);
  };

  const thenState: When<State, Event>['thenState'] = (expected) => {
    if ('error' in outcome) throw notRejected(outcome.error, 'expected a state', thenState);
    return checksOf(stateAfter(outcome.events)).thenState(expected);
  };

  // oxlint-disable-next-line unicorn/no-thenable -- given, when, then: `then` rejects an await
  return { then, thenRejected, thenState };
}

function checksOf<State>(state: State): ThenState<State> {
  const thenState: ThenState<State>['thenState'] = (expected) => {
    if (!isPredicate<State>(expected)) assertEqual(state, expected, thenState);
    else if (!expected(state)) {
      const message = `the state does not satisfy ${expected.toString()}: ${show(state)}`;
      throw new AssertionError({ message, actual: state, stackStartFn: thenState });
    }
    return { thenState };
  };
  return { thenState };
}

function isPredicate<State>(
  expected: State | ((state: State) => boolean),
): expected is (state: State) => boolean {
  return typeof expected === 'function';
}

function isRejection(error: unknown, expected: string | RegExp | undefined): boolean {
  if (expected instanceof RegExp) return error instanceof Error && expected.test(error.message);
  if (!(error instanceof MillraceError)) return false;
  const code: string = error.code;
  if (expected === undefined) return code === 'COMMAND_REJECTED';
  return expected === code || expected === error.details['reason'];
}

function notRejected(error: unknown, wanted: string, stackStartFn: CallableFunction): Error {
  const reason = error instanceof MillraceError ? error.details['reason'] : undefined;
  const name = typeof reason === 'string' ? `'${reason}': ` : '';
  const why = error instanceof Error ? `${name}${error.message}` : show(error);
  const failure = new AssertionError({ message: `${wanted}, but got ${why}`, stackStartFn });
  failure.cause = error;
  return failure;
}

/** Compares only type and payload, because expected events may have further fields. */
function plain({ type, payload }: NewEvent): NewEvent {
  return { type, payload };
}

const tenant = 'test';
const id = 'given';
const nowMs = Date.UTC(2025, 8, 30, 10);

function fixedContext(revision: number): DecideContext {
  let count = 0;
  const commandId = idFromKey('given#command');
  const nextId = (): string => idFromKey(`given#id-${count++}`);
  return { tenant, id, revision, nowMs, commandId, correlationId: commandId, nextId };
}

function aggregateEvent(
  { bc, name, version }: { readonly bc: string; readonly name: string; readonly version: number },
  event: NewEvent,
  revision: number,
): AggregateEvent {
  const envelope = createEnvelope(
    event,
    {
      tenant,
      aggregate: { bc, type: name, id, version: revision + 1 },
      eventId: idFromKey(`given#${revision}`),
    },
    { clock: { now: () => nowMs, sleep: () => Promise.resolve() } },
  );
  const stream = buildStreamName<string, string>(bc, name, version, tenant, id);
  return { ...envelope, stream, revision };
}

function show(value: unknown): string {
  return inspect(value, { depth: 10, breakLength: 80 });
}

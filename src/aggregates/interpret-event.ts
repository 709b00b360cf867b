// What a stored event says in today's words: older versions upcast, unknown ones refused or skipped.

import type { NewEvent } from '../contracts/envelope.ts';
import { isForgotten } from '../store/erasure.ts';
import type { AggregateEvent, Named } from './aggregate.ts';
import { aggregateError } from './aggregate-error.ts';
import { chainUpcasters, type Complain } from './upcast-chains.ts';
import type { Upcaster } from './upcast.ts';

export interface InterpreterOptions {
  readonly events: ReadonlyMap<string, Named>;
  readonly upcasters: readonly Upcaster[];
  readonly unknownEvents: 'fail' | 'skip';
  readonly complain: Complain;
}

/** Stored payloads of current types are trusted: they passed their schema when they were made. */
export function createInterpreter<Event extends NewEvent>(
  options: InterpreterOptions,
): (event: AggregateEvent) => AggregateEvent<Event> | undefined {
  const { events, upcasters, unknownEvents, complain } = options;
  const chains = chainUpcasters(events, upcasters, complain);

  const convert = (event: AggregateEvent, steps: readonly Upcaster[]): AggregateEvent => {
    const type = steps.at(-1)?.to ?? event.type;
    // Nothing is left to convert; it is still an event of today's type to whoever counts them.
    if (isForgotten(event.payload)) return { ...event, type };
    try {
      let payload = event.payload;
      for (const step of steps) payload = step.convert(payload);
      return { ...event, type, payload: events.get(type)?.parse(payload) };
    } catch (error) {
      throw unreadable(event, `could not be upcast to '${type}'`, error);
    }
  };

  return (event) => {
    if (events.has(event.type)) return event as AggregateEvent<Event>;
    const steps = chains.get(event.type);
    if (steps !== undefined) return convert(event, steps) as AggregateEvent<Event>;
    if (unknownEvents === 'skip') return undefined;
    const { stream, revision, type } = event;
    throw aggregateError(
      'EVENT_UNKNOWN',
      `'${type}' at revision ${revision} of '${stream}' is no event of its aggregate, and no upcaster leads from it to one`,
      { details: { stream, revision, type } },
    );
  };
}

export function unreadable(event: AggregateEvent, problem: string, cause: unknown): Error {
  const { stream, revision, type } = event;
  const why = cause instanceof Error ? cause.message : String(cause);
  return aggregateError(
    'EVENT_UNREADABLE',
    `'${type}' at revision ${revision} of '${stream}' ${problem}: ${why}`,
    { details: { stream, revision, type }, cause },
  );
}

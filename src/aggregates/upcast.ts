// Reads stored events in their newest version: upcasters convert older ones step by step.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { DomainEventEnvelope, NewEvent } from '../contracts/envelope.ts';
import { parseEventType, type EventType } from '../contracts/event-type.ts';
import { MillraceError } from '../foundation/error.ts';
import { isForgotten } from '../store/erasure.ts';

/** An event of an aggregate, stored or just decided: the envelope, its stream and its revision. */
export type AggregateEvent<Event extends NewEvent = NewEvent> = Event extends NewEvent
  ? DomainEventEnvelope<Event['payload']> & {
      readonly type: Event['type'];
      readonly stream: string;
      readonly revision: number;
    }
  : never;

/** The part of an event or command definition that an aggregate needs, whatever the payload. */
export interface Named<Agg extends string = string> {
  readonly type: `${Agg}.${string}`;
  readonly agg: string;
  readonly schema: StandardSchemaV1;
  parse(payload: unknown): unknown;
}

/** Converts the payload of an older event type into the next one; created by `upcast`. */
export interface Upcaster {
  readonly from: string;
  readonly to: string;
  readonly convert: (payload: unknown) => unknown;
}

type InputOf<Definition> = Definition extends (payload: infer Input) => unknown ? Input : never;

/**
 * Converts payloads when they are read; stored events do not change. Steps are chained, so each step
 * only needs to know the next version. With definitions instead of names both sides are typed. The
 * schema of the newest version checks the result.
 *
 * @example
 * import { upcast } from 'millrace/aggregates';
 *
 * const currencies = upcast('payment.completed.v1', 'payment.completed.v2', (payload) => ({
 *   ...payload,
 *   currency: 'EUR',
 * }));
 */
export function upcast<const From extends Named, const To extends Named>(
  from: From,
  to: To,
  convert: (payload: ReturnType<From['parse']>) => InputOf<To>,
): Upcaster;
export function upcast<const From extends string, const To extends string>(
  from: EventType<From>,
  to: EventType<To>,
  convert: (payload: Readonly<Record<string, unknown>>) => unknown,
): Upcaster;
export function upcast<Payload>(
  from: string | Named,
  to: string | Named,
  convert: (payload: Payload) => unknown,
): Upcaster {
  return {
    from: typeof from === 'string' ? from : from.type,
    to: typeof to === 'string' ? to : to.type,
    // Only stored payloads of type `from` are passed in.
    convert: (payload) => convert(payload as Payload),
  };
}

/** Creates the `AGGREGATE_INVALID` error; the caller adds the name of the aggregate. */
export type InvalidDefinition = (reason: string) => Error;

export interface InterpreterOptions {
  readonly events: ReadonlyMap<string, Named>;
  readonly upcasters: readonly Upcaster[];
  readonly unknownEvents: 'fail' | 'skip';
  readonly invalid: InvalidDefinition;
}

/** Payloads of current types are not parsed again: the schema checked them before they were stored. */
export function createInterpreter<Event extends NewEvent>(
  options: InterpreterOptions,
): (event: AggregateEvent) => AggregateEvent<Event> | undefined {
  const { events, upcasters, unknownEvents, invalid } = options;
  const chains = chainUpcasters(events, upcasters, invalid);

  const convert = (event: AggregateEvent, steps: readonly Upcaster[]): AggregateEvent => {
    const type = steps.at(-1)?.to ?? event.type;
    // An erased payload cannot be converted, but the event still counts as one of the newest type.
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
    throw new MillraceError(
      'EVENT_UNKNOWN',
      `'${type}' at revision ${revision} of '${stream}' is not an event of its aggregate, and no upcaster converts it to one`,
      { details: { stream, revision, type } },
    );
  };
}

export function unreadable(event: AggregateEvent, problem: string, cause: unknown): Error {
  const { stream, revision, type } = event;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new MillraceError(
    'EVENT_UNREADABLE',
    `'${type}' at revision ${revision} of '${stream}' ${problem}: ${why}`,
    { details: { stream, revision, type }, cause },
  );
}

interface UpcastGraph {
  readonly known: ReadonlyMap<string, Named>;
  readonly steps: ReadonlyMap<string, Upcaster>;
  readonly invalid: InvalidDefinition;
}

/** For each older type, the steps to a type in `known`. */
function chainUpcasters(
  known: ReadonlyMap<string, Named>,
  upcasters: readonly Upcaster[],
  invalid: InvalidDefinition,
): ReadonlyMap<string, readonly Upcaster[]> {
  const steps = new Map<string, Upcaster>();
  for (const step of upcasters) {
    if (known.has(step.from)) {
      throw invalid(`'${step.from}' is upcast, so it cannot be one of the events as well`);
    }
    if (steps.has(step.from)) throw invalid(`'${step.from}' is upcast twice`);
    steps.set(step.from, step);
  }
  const graph = { known, steps, invalid };
  for (const step of upcasters) checkVersions(step, graph);
  return new Map(upcasters.map(({ from }) => [from, chainFrom(from, graph)]));
}

function chainFrom(start: string, { known, steps, invalid }: UpcastGraph): readonly Upcaster[] {
  const chain: Upcaster[] = [];
  for (let type = start; !known.has(type);) {
    const step = steps.get(type);
    if (step === undefined) {
      throw invalid(
        `'${start}' is upcast to '${type}', which is neither an event nor upcast further`,
      );
    }
    if (chain.includes(step)) throw invalid(`the upcasters of '${start}' form a cycle`);
    chain.push(step);
    type = step.to;
  }
  return chain;
}

/** Events of a skipped version may exist in the store, so each version needs an upcaster. */
function checkVersions(step: Upcaster, { known, steps, invalid }: UpcastGraph): void {
  const from = parseEventType(step.from);
  const to = parseEventType(step.to);
  if (from.agg !== to.agg || from.action !== to.action) return;
  if (to.version < from.version)
    throw invalid(`'${step.from}' is upcast to the older version '${step.to}'`);
  for (let version = from.version + 1; version < to.version; version += 1) {
    const between = `${from.agg}.${from.action}.v${version}`;
    if (!known.has(between) && !steps.has(between)) {
      throw invalid(
        `'${step.from}' is upcast to '${step.to}', but '${between}' is neither an event nor upcast`,
      );
    }
  }
}

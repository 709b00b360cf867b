// Typed event definitions: the type, the payload schema, the constructor and the type guard.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { NewEvent } from './envelope.ts';
import { parseEventType, type EventType } from './event-type.ts';
import { applySchema } from './apply-schema.ts';

export interface EventDefinition<Type extends string, Input, Output> {
  /** Creates an event; the payload is validated and becomes the schema's output. */
  (payload: Input): NewEvent<Type, Output>;
  readonly type: Type;
  readonly agg: string;
  readonly action: string;
  readonly version: number;
  readonly schema: StandardSchemaV1<Input, Output>;
  /** Validates a payload from an external source. */
  parse(payload: unknown): Output;
  /** Narrows any event to this one by its type. */
  is(event: NewEvent): event is NewEvent<Type, Output>;
}

/** The union of the events that these definitions create. */
export type EventOf<Definition> =
  Definition extends EventDefinition<infer Type, infer _Input, infer Output>
    ? NewEvent<Type, Output>
    : never;

/**
 * Defines an event by its type and any Standard Schema (zod, valibot, arktype, …). A literal that
 * is not `<agg>.<action>.v<version>` does not compile.
 *
 * @example
 * import { defineEvent } from 'millrace/contracts';
 * import { z } from 'zod';
 *
 * const paymentCompleted = defineEvent('payment.completed.v1', z.object({ amount: z.number() }));
 * const event = paymentCompleted({ amount: 12.5 }); // { type: 'payment.completed.v1', payload: … }
 */
export function defineEvent<const Type extends string, Input, Output>(
  type: EventType<Type>,
  schema: StandardSchemaV1<Input, Output>,
): EventDefinition<Type, Input, Output> {
  const { agg, action, version } = parseEventType(type);
  const name = type as string as Type;
  const parse = (payload: unknown): Output => applySchema(name, schema, payload);
  return Object.assign((payload: Input) => ({ type: name, payload: parse(payload) }), {
    type: name,
    agg,
    action,
    version,
    schema,
    parse,
    is: (event: NewEvent): event is NewEvent<Type, Output> => event.type === name,
  });
}

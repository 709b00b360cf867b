// Typed command definitions, `<agg>.<verb>`: a request to change an aggregate.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { applySchema } from './apply-schema.ts';
import {
  checkLength,
  isIdentifier,
  nameInvalid,
  nameLimits,
  type IsIdentifier,
} from './identifier.ts';

/** The literal itself when TypeScript can see that it is a command type; otherwise the reason. */
export type CommandType<S extends string> = string extends S
  ? S
  : S extends `${infer Agg}.${infer Verb}`
    ? IsIdentifier<Agg> extends true
      ? IsIdentifier<Verb> extends true
        ? S
        : `'${Verb}' is not kebab-case`
      : `'${Agg}' is not kebab-case`
    : `'${S}' is not <agg>.<verb>`;

export interface NewCommand<Type extends string = string, Payload = unknown> {
  readonly type: Type;
  readonly payload: Payload;
}

export interface CommandDefinition<Type extends string, Input, Output> {
  (payload: Input): NewCommand<Type, Output>;
  readonly type: Type;
  readonly agg: string;
  readonly verb: string;
  readonly schema: StandardSchemaV1<Input, Output>;
  parse(payload: unknown): Output;
  is(command: NewCommand): command is NewCommand<Type, Output>;
}

/** The union of the commands that these definitions create. */
export type CommandOf<Definition> =
  Definition extends CommandDefinition<infer Type, infer _Input, infer Output>
    ? NewCommand<Type, Output>
    : never;

/**
 * Defines a command by its type and any Standard Schema. Command types are imperative and have no
 * version, which distinguishes them from event types.
 *
 * @example
 * import { defineCommand } from 'millrace/contracts';
 * import { z } from 'zod';
 *
 * const requestPayment = defineCommand('payment.request', z.object({ amount: z.number().positive() }));
 * const command = requestPayment({ amount: 12.5 });
 */
export function defineCommand<const Type extends string, Input, Output>(
  type: CommandType<Type>,
  schema: StandardSchemaV1<Input, Output>,
): CommandDefinition<Type, Input, Output> {
  const name = type as string as Type;
  checkLength(name, nameLimits.eventTypeCharsMax);
  const [agg = '', verb = '', ...rest] = name.split('.');
  if (rest.length > 0 || !isIdentifier(agg) || !isIdentifier(verb)) {
    throw nameInvalid(
      'command',
      name,
      'must be <agg>.<verb> in kebab-case, such as payment.request',
    );
  }
  const parse = (payload: unknown): Output => applySchema(name, schema, payload);
  return Object.assign((payload: Input) => ({ type: name, payload: parse(payload) }), {
    type: name,
    agg,
    verb,
    schema,
    parse,
    is: (command: NewCommand): command is NewCommand<Type, Output> => command.type === name,
  });
}

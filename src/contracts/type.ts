// The builders of definitions, as TypeBox has them. Its own are loaded with 370 other files, which was a third of
// what a process took to start; we take its types, and its compiler of JSON Schema.

import type { Type as TypeBox } from 'typebox';

type Definition = Readonly<Record<string, unknown>>;

/** As TypeBox marks it, so that its definitions and ours can be parts of each other. */
const optional = '~optional';

function marked(definition: Definition, mark: string, value: unknown): Definition {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(definition));
  return Object.defineProperty(copy, mark, { value, enumerable: false });
}

function object(properties: Readonly<Record<string, Definition>>, more?: Definition): Definition {
  const required = Object.keys(properties).filter((name) => properties[name]?.[optional] !== true);
  return {
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties,
    ...more,
  };
}

/** Of strings: all names, or those of a pattern. */
function record(key: Definition, value: Definition, more?: Definition): Definition {
  const { pattern = '^.*$' } = key as { readonly pattern?: string };
  return { type: 'object', patternProperties: { [pattern]: value }, ...more };
}

const builders = {
  Any: (more?: Definition) => ({ ...more }),
  Array: (items: Definition, more?: Definition) => ({ type: 'array', items, ...more }),
  Boolean: (more?: Definition) => ({ type: 'boolean', ...more }),
  Enum: (values: readonly unknown[], more?: Definition) => ({ enum: values, ...more }),
  Integer: (more?: Definition) => ({ type: 'integer', ...more }),
  Literal: (value: unknown, more?: Definition) => ({ type: typeof value, const: value, ...more }),
  Null: (more?: Definition) => ({ type: 'null', ...more }),
  Number: (more?: Definition) => ({ type: 'number', ...more }),
  Object: object,
  Optional: (definition: Definition) => marked(definition, optional, true),
  Record: record,
  String: (more?: Definition) => ({ type: 'string', ...more }),
  Union: (anyOf: readonly Definition[], more?: Definition) => ({ anyOf, ...more }),
  Unknown: (more?: Definition) => ({ ...more }),
  Unsafe: (definition: Definition) => ({ ...definition }),
};

// What they take and give is said by TypeBox's types; the test compares what they build with its own.
/**
 * Builds the schemas of routes and messages: TypeBox's definitions, without the time that TypeBox takes to load.
 *
 * @example
 * import { Type } from 'millrace/contracts';
 *
 * const amount = Type.Object({ cents: Type.Integer({ minimum: 0 }), note: Type.Optional(Type.String()) });
 * amount.required; // ['cents']
 */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;

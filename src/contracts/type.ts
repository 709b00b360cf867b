// Schema builders compatible with TypeBox. Importing TypeBox's builders loads 370 files, a third of the start-up time,
// so only its types and its JSON Schema compiler are used.

import type { Type as TypeBox } from 'typebox';

type Definition = Readonly<Record<string, unknown>>;

/** TypeBox's marker: definitions of TypeBox and of this file can be nested in each other. */
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

/** The key is any string, or a string with a pattern. */
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

// Typed by the types of TypeBox; the test compares the results with TypeBox's.
/**
 * Builds the schemas of routes and messages: TypeBox definitions without TypeBox's load time.
 *
 * @example
 * import { Type } from 'millrace/contracts';
 *
 * const amount = Type.Object({ cents: Type.Integer({ minimum: 0 }), note: Type.Optional(Type.String()) });
 * amount.required; // ['cents']
 */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;

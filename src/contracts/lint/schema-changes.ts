// Compares two JSON Schemas of one event version by the rules of evolution: fields are neither removed nor retyped, and
// new fields are optional. Stored events were checked by the former schema and are read by the new code.

export const schemaRules = {
  'field-removed': 'a field of stored events no longer exists',
  'field-retyped': 'a field no longer allows a type or a value that stored events may have',
  'field-required': 'a field is required that stored events may not have',
} as const;

export interface SchemaChange {
  readonly rule: keyof typeof schemaRules;
  /** JSON pointer into the payload; `*` stands for any item of a list or any key of an object. */
  readonly field: string;
  readonly reason: string;
}

type Json = Readonly<Record<string, unknown>>;

/** A schema with the document that its references point into. */
interface Node {
  readonly schema: Json;
  readonly root: Json;
}

/** All changes from `before` to `after` that break the rules; empty if stored events remain valid. */
export function schemaChanges(before: Json, after: Json): readonly SchemaChange[] {
  const pair = [
    { schema: before, root: before },
    { schema: after, root: after },
  ] as const;
  return compare(pair, '', []);
}

/** The former and the current schema of a field. */
type Pair = readonly [before: Node, after: Node];

/** `open` are the pairs that contain this one: a recursive schema is compared once. */
function compare(pair: Pair, field: string, open: readonly Pair[]): readonly SchemaChange[] {
  const [before, after] = pair.map(resolved) as [Node, Node];
  if (open.some(([a, b]) => a.schema === before.schema && b.schema === after.schema)) return [];
  const inside: readonly Pair[] = [...open, [before, after]];
  const current = variantsOf(after);
  return variantsOf(before).flatMap((variant) => {
    const sameKind = current
      .filter((each) => allows(each, variant))
      .map((each) => compareMembers([variant, each], field, inside))
      .toSorted((a, b) => a.length - b.length);
    return sameKind[0] ?? [retyped(field, variant, current)];
  });
}

/** Whether the type, or the only value, of the former schema is still allowed. */
function allows(after: Node, before: Node): boolean {
  const [from, to] = [typeOf(before), typeOf(after)];
  const isSameType = to === from || to === 'any' || (from === 'integer' && to === 'number');
  const value = valueOf(after);
  return isSameType && (value === undefined || value === valueOf(before));
}

function compareMembers(
  [before, after]: Pair,
  field: string,
  open: readonly Pair[],
): readonly SchemaChange[] {
  const [own, other] = [shapeOf(before), shapeOf(after)];
  const changes: SchemaChange[] = [];
  for (const [name, schema] of own.fields) {
    const path = pointer(field, name);
    const next = other.fields.get(name) ?? other.rest;
    if (next === undefined) {
      changes.push({ rule: 'field-removed', field: path, reason: `'${path}' is removed` });
    } else changes.push(...compare([schema, next], path, open));
  }
  for (const name of other.required) {
    if (own.required.has(name)) continue;
    const path = pointer(field, name);
    const reason = `'${path}' is required, but stored events may lack it: make it optional`;
    changes.push({ rule: 'field-required', field: path, reason });
  }
  if (own.rest !== undefined && other.rest !== undefined) {
    changes.push(...compare([own.rest, other.rest], `${field}/*`, open));
  }
  for (const [index, item] of own.items.entries()) {
    const next = other.items[index] ?? other.items.at(-1);
    if (next !== undefined) changes.push(...compare([item, next], `${field}/*`, open));
  }
  return changes;
}

/** The alternatives of a schema: of a union, of a list of types, of a list of values. */
function variantsOf(given: Node): readonly Node[] {
  const node = resolved(given);
  const { anyOf, oneOf, type, enum: values } = node.schema;
  const union = anyOf ?? oneOf;
  if (Array.isArray(union)) return union.flatMap((each) => variantsOf(child(node, each)));
  const as = (change: Json): Node => ({ ...node, schema: { ...node.schema, ...change } });
  if (Array.isArray(values)) return values.map((value) => as({ enum: undefined, const: value }));
  if (Array.isArray(type)) return type.map((each) => as({ type: each }));
  return [node];
}

function resolved(node: Node): Node {
  const { $ref } = node.schema;
  if (typeof $ref !== 'string' || !$ref.startsWith('#')) return node;
  let target: unknown = node.root;
  for (const part of $ref.split('/').slice(1)) target = recordOf(target)[part];
  return { ...node, schema: recordOf(target) };
}

function typeOf({ schema }: Node): string {
  const { type, const: value } = schema;
  if (typeof type === 'string') return type;
  if (value !== undefined) return value === null ? 'null' : typeof value;
  if (schema['properties'] !== undefined || schema['allOf'] !== undefined) return 'object';
  return schema['items'] === undefined ? 'any' : 'array';
}

/** The only value that the schema allows, as JSON. */
function valueOf({ schema }: Node): string | undefined {
  return schema['const'] === undefined ? undefined : JSON.stringify(schema['const']);
}

interface Shape {
  readonly fields: ReadonlyMap<string, Node>;
  readonly required: ReadonlySet<string>;
  /** The schema of all other fields. */
  readonly rest: Node | undefined;
  /** The schemas of the items of a list, the last one for all later items. */
  readonly items: readonly Node[];
}

/** An intersection has the fields of all its parts. */
function shapeOf(node: Node): Shape {
  const { properties, required, additionalProperties, allOf, prefixItems, items } = node.schema;
  const parts = listOf(allOf).map((each) => shapeOf(resolved(child(node, each))));
  const own = Object.entries(recordOf(properties)).map(
    ([name, schema]) => [name, child(node, schema)] as const,
  );
  const rest = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const all = [...listOf(prefixItems), ...(items === undefined ? [] : [items])];
  return {
    fields: new Map([...parts.flatMap(({ fields }) => [...fields]), ...own]),
    required: new Set([
      ...parts.flatMap((part) => [...part.required]),
      ...listOf(required).map(String),
    ]),
    rest: rest === undefined ? parts.find((part) => part.rest)?.rest : child(node, rest),
    items: all.map((each) => child(node, each)),
  };
}

function pointer(field: string, name: string): string {
  return `${field}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function retyped(field: string, before: Node, after: readonly Node[]): SchemaChange {
  const name = (node: Node): string => valueOf(node) ?? typeOf(node);
  const now = [...new Set(after.map(name))].join(' or ');
  const where = field === '' ? 'the payload' : `'${field}'`;
  return { rule: 'field-retyped', field, reason: `${where} was ${name(before)} and is now ${now}` };
}

const child = ({ root }: Node, schema: unknown): Node => ({ schema: recordOf(schema), root });

function recordOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type as TypeBox, type TSchema } from 'typebox';
import { Type } from './type.ts';

type Builders = typeof Type;

const definitions: Readonly<Record<string, (type: Builders) => TSchema>> = {
  any: (type) => type.Any({ description: 'anything' }),
  unknown: (type) => type.Unknown(),
  array: (type) => type.Array(type.String(), { maxItems: 3 }),
  boolean: (type) => type.Boolean({ default: true }),
  enum: (type) => type.Enum(['a', 'b'], { description: 'one of two' }),
  integer: (type) => type.Integer({ minimum: 1 }),
  'literal text': (type) => type.Literal('a', { description: 'only this' }),
  'literal number': (type) => type.Literal(3),
  'literal boolean': (type) => type.Literal(true),
  null: (type) => type.Null(),
  number: (type) => type.Number({ maximum: 1 }),
  'empty object': (type) => type.Object({}),
  'closed object': (type) =>
    type.Object(
      { here: type.String(), perhaps: type.Optional(type.Integer()) },
      { additionalProperties: false },
    ),
  'object of what may be missing': (type) => type.Object({ a: type.Optional(type.String()) }),
  'optional of optional': (type) => type.Optional(type.Optional(type.String({ minLength: 1 }))),
  record: (type) => type.Record(type.String(), type.Unknown()),
  'record by a pattern': (type) =>
    type.Record(type.String({ pattern: '^a$' }), type.Integer(), { maxProperties: 3 }),
  union: (type) => type.Union([type.String(), type.Null()], { description: 'text or nothing' }),
  unsafe: (type) => type.Unsafe<string>({ type: 'string', pattern: '^a' }),
};

for (const [name, build] of Object.entries(definitions)) {
  test(`${name}: the definition is TypeBox's`, () => {
    assert.deepEqual(plain(build(Type)), plain(build(TypeBox)));
    assert.deepEqual(Object.keys(build(Type)).toSorted(), Object.keys(build(TypeBox)).toSorted());
  });
}

test('optional fields of TypeBox and of Type are interchangeable', () => {
  const ours = Type.Object({ a: TypeBox.Optional(TypeBox.String()), b: TypeBox.String() });
  const theirs = TypeBox.Object({ a: Type.Optional(Type.String()), b: Type.String() });
  assert.deepEqual(plain(ours), plain(theirs));
});

function plain(definition: TSchema): unknown {
  return JSON.parse(JSON.stringify(definition));
}

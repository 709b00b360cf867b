import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type, type TSchema } from 'typebox';
import { z, type ZodType } from 'zod';
import { schemaChanges } from './schema-changes.ts';

type Json = Readonly<Record<string, unknown>>;

/** Rule and field of each change. */
function changes(before: TSchema | ZodType, after: TSchema | ZodType): readonly string[] {
  const found = schemaChanges(jsonOf(before), jsonOf(after));
  return found.map(({ rule, field }) => `${rule} ${field}`);
}

function jsonOf(schema: TSchema | ZodType): Json {
  return schema instanceof z.ZodType ? z.toJSONSchema(schema, { io: 'output' }) : (schema as Json);
}

const money = { amount: z.number(), currency: z.string() };

describe('the rules of evolution', () => {
  test('an optional field may be added, a required one may not', () => {
    const before = z.object(money);
    assert.deepEqual(changes(before, z.object({ ...money, note: z.string().optional() })), []);
    assert.deepEqual(changes(before, z.object({ ...money, note: z.string() })), [
      'field-required /note',
    ]);
    const optional = z.object({ ...money, note: z.string().optional() });
    assert.deepEqual(changes(optional, z.object({ ...money, note: z.string() })), [
      'field-required /note',
    ]);
    // Events are stored with the default, but those of the former schema have no such field.
    assert.deepEqual(changes(before, z.object({ ...money, note: z.string().default('') })), [
      'field-required /note',
    ]);
  });

  test('a field may not be removed, renamed or retyped, at any depth', () => {
    const before = z.object({
      payer: z.object({ name: z.string() }),
      lines: z.array(z.object(money)),
    });
    assert.deepEqual(changes(before, before), []);
    assert.deepEqual(
      changes(before, z.object({ payer: z.object({}), lines: z.array(z.object(money)) })),
      ['field-removed /payer/name'],
    );
    assert.deepEqual(
      changes(before, z.object({ ...before.shape, payer: z.object({ fullName: z.string() }) })),
      ['field-removed /payer/name', 'field-required /payer/fullName'],
    );
    const line = z.object({ ...money, amount: z.string() });
    assert.deepEqual(changes(before, z.object({ ...before.shape, lines: z.array(line) })), [
      'field-retyped /lines/*/amount',
    ]);
    assert.deepEqual(changes(before, z.object({ ...before.shape, lines: z.object(money) })), [
      'field-retyped /lines',
    ]);
    assert.deepEqual(changes(z.object(money), z.string()), ['field-retyped ']);
  });

  test('a type may be widened, not narrowed', () => {
    const of = (type: TSchema): TSchema => Type.Object({ value: type });
    for (const [narrow, wide] of [
      [Type.Integer(), Type.Number()],
      [Type.String(), Type.Union([Type.String(), Type.Null()])],
      [Type.Literal('a'), Type.Union([Type.Literal('a'), Type.Literal('b')])],
      [Type.Enum(['a', 'b']), Type.String()],
      [Type.String(), Type.Unknown()],
    ] as const) {
      assert.deepEqual(changes(of(narrow), of(wide)), []);
      assert.ok(changes(of(wide), of(narrow)).includes('field-retyped /value'));
    }
    assert.deepEqual(changes(z.enum(['a', 'b']), z.enum(['b', 'c'])), ['field-retyped ']);
  });

  test('each alternative of a union must remain', () => {
    const card = z.object({ kind: z.literal('card'), last4: z.string() });
    const bank = z.object({ kind: z.literal('bank'), iban: z.string() });
    const both = z.object({ source: z.union([card, bank]) });
    assert.deepEqual(changes(z.object({ source: card }), both), []);
    assert.deepEqual(changes(both, z.object({ source: z.union([bank, card]) })), []);
    const short = bank.omit({ iban: true });
    assert.deepEqual(changes(both, z.object({ source: z.union([card, short]) })), [
      'field-removed /source/iban',
    ]);
    assert.deepEqual(changes(both, z.object({ source: card })), [
      'field-retyped /source/kind',
      'field-removed /source/iban',
      'field-required /source/last4',
    ]);
  });

  test('records, tuples, intersections and recursive schemas are compared', () => {
    const record = (value: ZodType): ZodType => z.record(z.string(), value);
    assert.deepEqual(changes(record(z.string()), record(z.number())), ['field-retyped /*']);
    assert.deepEqual(changes(z.object({ a: z.string() }), record(z.string())), []);
    assert.deepEqual(
      changes(z.tuple([z.string(), z.number()]), z.tuple([z.string(), z.string()])),
      ['field-retyped /*'],
    );
    const parts = [z.object({ a: z.string() }), z.object({ b: z.string() })] as const;
    assert.deepEqual(changes(z.intersection(...parts), z.object({ a: z.string() })), [
      'field-removed /b',
    ]);
    const tree = (leaf: ZodType): ZodType => {
      const node: ZodType = z.object({
        leaf,
        get left() {
          return node.optional();
        },
        get right() {
          return node.optional();
        },
      });
      return node;
    };
    assert.deepEqual(changes(tree(z.string()), tree(z.string())), []);
    assert.ok(changes(tree(z.string()), tree(z.number())).includes('field-retyped /leaf'));
  });
});

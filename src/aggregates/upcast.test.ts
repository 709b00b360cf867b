import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineCommand } from '../contracts/define-command.ts';
import { defineEvent } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';
import { given } from '../testing/given.ts';
import { defineAggregate } from './define-aggregate.ts';
import type { Upcaster } from './upcast.ts';
import { upcast } from './upcast.ts';

const completedV1 = defineEvent('payment.completed.v1', z.object({ amount: z.number() }));
const completedV2 = defineEvent(
  'payment.completed.v2',
  z.object({ amount: z.number(), currency: z.string() }),
);
const completed = defineEvent(
  'payment.completed.v3',
  z.object({
    money: z.object({ amount: z.number(), currency: z.string() }),
    note: z.string().default('-'),
  }),
);
const complete = defineCommand('payment.complete', z.object({}));

const toV2 = upcast('payment.completed.v1', 'payment.completed.v2', (payload) => ({
  ...payload,
  currency: 'EUR',
}));
const toV3 = upcast(completedV2, completed, (money) => ({ money }));

function paymentWith(
  upcasters: readonly Upcaster[],
  more: { readonly unknownEvents?: 'fail' | 'skip' } = {},
) {
  return defineAggregate({
    bc: 'paymenthub',
    name: 'payment',
    version: 1,
    events: [completed],
    commands: [complete],
    initial: { seen: [] as readonly string[] },
    evolve: {
      'payment.completed.v3': ({ seen }, { money, note }, { type, revision }) => ({
        seen: [...seen, `${revision} ${type} ${money.amount} ${money.currency} ${note}`],
      }),
    },
    decide: { 'payment.complete': () => [] },
    upcasters,
    ...more,
  });
}

const coded = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof MillraceError);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

test('older versions are upcast step by step, and the newest schema checks the result', () => {
  given(paymentWith([toV3, toV2]), [
    completedV1({ amount: 1 }),
    completedV2({ amount: 2, currency: 'USD' }),
    completed({ money: { amount: 3, currency: 'CHF' }, note: 'new' }),
  ]).thenState({
    seen: [
      '0 payment.completed.v3 1 EUR -',
      '1 payment.completed.v3 2 USD -',
      '2 payment.completed.v3 3 CHF new',
    ],
  });
});

test('an upcaster between definitions is typed on both sides', () => {
  // @ts-expect-error -- the second version needs a currency
  upcast(completedV1, completedV2, ({ amount }) => ({ amount }));
  // @ts-expect-error -- the first version has none
  upcast(completedV1, completedV2, ({ amount, currency }) => ({ amount, currency }));
  // @ts-expect-error -- not an event type
  upcast('payment.completed', 'payment.completed.v2', (payload) => payload);
});

test('a renamed event is read under its new name', () => {
  const renamed = upcast('payment.done.v1', 'payment.completed.v2', (payload) => payload);
  given(paymentWith([renamed, toV3]), [
    { type: 'payment.done.v1', payload: { amount: 4, currency: 'EUR' } },
  ]).thenState({ seen: ['0 payment.completed.v3 4 EUR -'] });
});

test('invalid upcaster chains are rejected at definition time', () => {
  const assertInvalid = (upcasters: readonly Upcaster[], message: RegExp): void =>
    assert.throws(() => paymentWith(upcasters), coded('AGGREGATE_INVALID', message));
  const step = (from: string, to: string): Upcaster => upcast(from, to, (payload) => payload);

  assertInvalid(
    [toV2],
    /upcast to 'payment.completed.v2', which is neither an event nor upcast further/,
  );
  assertInvalid([toV2, toV3, toV2], /'payment.completed.v1' is upcast twice/);
  assertInvalid(
    [step('payment.a.v1', 'payment.b.v1'), step('payment.b.v1', 'payment.a.v1')],
    /form a cycle/,
  );
  assertInvalid([step('payment.a.v1', 'payment.a.v1')], /form a cycle/);
  assertInvalid([step('payment.completed.v4', 'payment.completed.v3')], /older version/);
  assertInvalid(
    [step('payment.completed.v1', 'payment.completed.v3')],
    /'payment.completed.v2' is neither an event nor upcast/,
  );
  assertInvalid(
    [step('payment.completed.v3', 'payment.completed.v4')],
    /cannot be one of the events/,
  );
  assert.ok(paymentWith([step('payment.completed.v1', 'payment.completed.v3'), toV3]));
});

test('an erased payload is not converted', () => {
  const payload = { $forgotten: { subject: 'person-1', forgottenAt: '2025-09-30T10:00:00.000Z' } };
  given(paymentWith([toV3, toV2]), [{ type: 'payment.completed.v1', payload }]).thenState({
    seen: [],
  });
});

test('an unknown event type is an error with its revision, or skipped', () => {
  const history: NewEvent[] = [
    completed({ money: { amount: 1, currency: 'EUR' } }),
    { type: 'payment.cancelled.v1', payload: {} },
  ];
  assert.throws(
    () => given(paymentWith([]), history),
    coded(
      'EVENT_UNKNOWN',
      /'payment.cancelled.v1' at revision 1 of 'paymenthub.payment.v1-test-given'/,
    ),
  );
  given(paymentWith([], { unknownEvents: 'skip' }), history).thenState(
    ({ seen }) => seen.length === 1,
  );
});

test('the error of a failing upcaster or an invalid result names the event', () => {
  const failing = upcast('payment.completed.v2', 'payment.completed.v3', () => {
    throw new Error('no idea');
  });
  const wrong = upcast('payment.completed.v2', 'payment.completed.v3', () => ({ money: 'much' }));
  for (const [upcaster, message] of [
    [failing, /could not be upcast to 'payment.completed.v3': no idea/],
    [wrong, /could not be upcast to 'payment.completed.v3'.*\/money/],
  ] as const) {
    assert.throws(
      () => given(paymentWith([upcaster]), [completedV2({ amount: 1, currency: 'EUR' })]),
      coded('EVENT_UNREADABLE', message),
    );
  }
});

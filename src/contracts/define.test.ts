import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { z } from 'zod';
import { hasCode } from '../foundation/error.ts';
import { defineCommand, type CommandOf } from './define-command.ts';
import { defineEvent, type EventOf } from './define-event.ts';
import type { NewEvent } from './envelope.ts';

const completed = defineEvent(
  'payment.completed.v1',
  z.object({ amount: z.coerce.number().positive(), note: z.string().default('') }),
);
const request = defineCommand('payment.request', z.object({ amount: z.number() }));

test('a definition creates events with the output of the schema', () => {
  assert.deepEqual(completed({ amount: 12.5 }), {
    type: 'payment.completed.v1',
    payload: { amount: 12.5, note: '' },
  });
  assert.deepEqual(
    [completed.agg, completed.action, completed.version],
    ['payment', 'completed', 1],
  );
});

test('a definition recognises its own events and narrows their type', () => {
  const event: NewEvent = completed({ amount: 1 });
  assert.ok(completed.is(event));
  const amount: number = event.payload.amount;
  assert.equal(amount, 1);
  assert.ok(!completed.is({ type: 'payment.failed.v1', payload: {} }));
});

test('an invalid payload is rejected with all problems', () => {
  assert.throws(
    () => completed.parse({ amount: -1, note: 3 }),
    (error) => {
      assert.ok(hasCode(error, 'PAYLOAD_INVALID'));
      const problems = error.details['problems'] as readonly { readonly path: string }[];
      assert.deepEqual(
        problems.map(({ path }) => path),
        ['/amount', '/note'],
      );
      return true;
    },
  );
});

test('a command is imperative and has no version', () => {
  assert.deepEqual(request({ amount: 3 }), { type: 'payment.request', payload: { amount: 3 } });
  assert.ok(request.is({ type: 'payment.request', payload: {} }));
  assert.deepEqual([request.agg, request.verb], ['payment', 'request']);
});

test('an asynchronous schema is rejected', () => {
  const later: StandardSchemaV1<unknown, number> = {
    '~standard': { version: 1, vendor: 'test', validate: async () => ({ value: 1 }) },
  };
  assert.throws(
    () => defineEvent('a.done.v1', later)(1),
    (error) => hasCode(error, 'SCHEMA_ASYNC'),
  );
});

test('invalid literal names do not compile, and other invalid names throw', () => {
  const schema = z.object({});
  const invalid = (work: () => unknown): void =>
    assert.throws(work, (error) => hasCode(error, 'NAME_INVALID'));
  // @ts-expect-error -- not kebab-case
  invalid(() => defineEvent('Payment.completed.v1', schema));
  // @ts-expect-error -- no version
  invalid(() => defineEvent('payment.completed', schema));
  // @ts-expect-error -- version 0
  invalid(() => defineEvent('payment.completed.v0', schema));
  // @ts-expect-error -- no whole version
  invalid(() => defineEvent('payment.completed.v1.5', schema));
  // @ts-expect-error -- an event type is not a command type
  invalid(() => defineCommand('payment.complete.v1', schema));
  // @ts-expect-error -- not kebab-case
  invalid(() => defineCommand('payment.Complete', schema));
  const unseen: string = 'Payment.completed.v1';
  invalid(() => defineEvent(unseen, schema));
});

test('the types of events and commands follow from their definitions', () => {
  const event: EventOf<typeof completed> = {
    type: 'payment.completed.v1',
    payload: { amount: 1, note: '' },
  };
  const command: CommandOf<typeof request> = { type: 'payment.request', payload: { amount: 1 } };
  // @ts-expect-error -- the output form has a note
  const incomplete: typeof event.payload = { amount: 1 };
  assert.ok(event.type !== (command.type as string) && incomplete.amount === 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineCommand } from '../contracts/define-command.ts';
import { defineEvent } from '../contracts/define-event.ts';
import { MillraceError } from '../foundation/error.ts';
import { given } from '../testing/given.ts';
import { defineAggregate } from './define-aggregate.ts';
import {
  account,
  deposit,
  deposited,
  open,
  opened,
} from '../testing/support/aggregates/example-account.ts';
import { CommandRejected } from './command-rejected.ts';

const opens = defineEvent('door.opened.v1', z.object({}));
const closes = defineEvent('door.closed.v1', z.object({ by: z.string() }));
const openDoor = defineCommand('door.open', z.object({}));
const name = 'door';
const initial = { isOpen: false };
const base = { bc: 'house', name, version: 1, initial } as const;

const coded = (code: string) => (error: unknown) =>
  error instanceof MillraceError && (error.code as string) === code;

test('a history and a command produce events, and events produce a state', () => {
  given(account, [opened({ owner: 'ada' })])
    .when(deposit({ amount: 5 }))
    .then([deposited({ amount: 5 })])
    .thenState({ owner: 'ada', balance: 5 });
});

test('an external command is checked by its schema', () => {
  assert.deepEqual(
    account.parseCommand({ type: 'account.deposit', payload: { amount: 5, more: 1 } }),
    deposit({ amount: 5 }),
  );
  assert.throws(
    () => account.parseCommand({ type: 'account.deposit', payload: { amount: -5 } }),
    coded('PAYLOAD_INVALID'),
  );
  for (const type of ['account.steal', 'constructor', '__proto__']) {
    assert.throws(() => account.parseCommand({ type, payload: {} }), coded('COMMAND_UNKNOWN'));
  }
});

test('a rejection has a reason for programs and a message for people', () => {
  const rejection = new CommandRejected('insufficient-funds', 'only 3 left', { balance: 3 });
  assert.ok(coded('COMMAND_REJECTED')(rejection));
  assert.equal(rejection.retryable, false);
  assert.equal(rejection.reason, 'insufficient-funds');
  assert.deepEqual(rejection.details, { balance: 3, reason: 'insufficient-funds' });
});

test('a missing handler is a type error, and throws without type checking', () => {
  const invalid = (work: () => unknown, message: RegExp): void =>
    assert.throws(work, (error) => {
      assert.ok(coded('AGGREGATE_INVALID')(error));
      assert.match((error as Error).message, message);
      return true;
    });
  const evolve = { 'door.opened.v1': () => ({ isOpen: true }) };
  const decide = { 'door.open': () => opens({}) };
  const whole = { ...base, events: [opens], commands: [openDoor], evolve, decide } as const;
  assert.equal(defineAggregate(whole).name, 'door');

  invalid(
    // @ts-expect-error -- no handler for door.closed.v1
    () => defineAggregate({ ...whole, events: [opens, closes] }),
    /evolve has no handler for 'door.closed.v1'/,
  );
  // @ts-expect-error -- no handler for door.open
  invalid(() => defineAggregate({ ...whole, decide: {} }), /decide has no handler for 'door.open'/);
  invalid(
    // @ts-expect-error -- decide returns an unlisted event
    () => defineAggregate({ ...whole, events: [] }),
    /evolve handles 'door.opened.v1', which is not listed/,
  );
  invalid(
    // @ts-expect-error -- an event of another aggregate
    () => defineAggregate({ ...whole, events: [opens, deposited] }),
    /'account.deposited.v1' belongs to 'account'/,
  );
  invalid(
    // @ts-expect-error -- a command of another aggregate
    () => defineAggregate({ ...whole, commands: [openDoor, deposit] }),
    /'account.deposit' belongs to 'account'/,
  );
  invalid(() => defineAggregate({ ...whole, events: [opens, opens] }), /listed twice/);
  invalid(() => defineAggregate({ ...whole, snapshot: { every: 0 } }), /snapshot.every/);
  invalid(() => defineAggregate({ ...whole, snapshot: { codeVersion: 1.5 } }), /codeVersion/);
  invalid(() => defineAggregate({ ...whole, snapshot: { afterMs: 0 } }), /afterMs/);
});

test('each handler gets the types of its event or command', () => {
  defineAggregate({
    ...base,
    events: [opens, closes],
    commands: [openDoor],
    evolve: {
      // @ts-expect-error -- the state has no such member
      'door.opened.v1': () => ({ isShut: false }),
      'door.closed.v1': (state, payload, event) => {
        const by: string = payload.by;
        const type: 'door.closed.v1' = event.type;
        // @ts-expect-error -- not in the payload
        const nothing: unknown = payload.amount;
        return { isOpen: state.isOpen && by === type && nothing === undefined };
      },
    },
    decide: {
      // @ts-expect-error -- not an event of this aggregate
      'door.open': () => deposited({ amount: 1 }),
    },
  });
});

test('invalid names are rejected', () => {
  const rest = { version: 1, initial, events: [], commands: [], evolve: {}, decide: {} } as const;
  // @ts-expect-error -- not kebab-case
  assert.throws(() => defineAggregate({ ...rest, bc: 'House', name }), coded('NAME_INVALID'));
  assert.throws(
    // @ts-expect-error -- not kebab-case
    () => defineAggregate({ ...rest, bc: 'house', name: 'a_b' }),
    coded('NAME_INVALID'),
  );
  assert.throws(
    () => defineAggregate({ ...rest, bc: 'house', name, version: 0 }),
    coded('NAME_INVALID'),
  );
});

test('a decision that returns an unlisted event is rejected', () => {
  const careless = defineAggregate({
    ...base,
    events: [opens],
    commands: [openDoor],
    evolve: { 'door.opened.v1': () => ({ isOpen: true }) },
    decide: { 'door.open': () => ({ type: 'door.burnt.v1', payload: {} }) as never },
  });
  given(careless, []).when(openDoor({})).thenRejected('EVENT_UNKNOWN');
});

test('the initial state is frozen', () => {
  const careless = defineAggregate({
    ...base,
    initial: { opened: { times: [] as number[] } },
    events: [opens],
    commands: [openDoor],
    evolve: {
      'door.opened.v1': (state, _payload, { revision }) => {
        state.opened.times.push(revision);
        return state;
      },
    },
    decide: { 'door.open': () => opens({}) },
  });
  assert.throws(() => given(careless, [opens({})]), coded('EVENT_UNREADABLE'));
  assert.deepEqual(careless.initial, { opened: { times: [] } });
});

test('an error in evolve names the event', () => {
  const faulty = defineAggregate({
    ...base,
    events: [opens],
    commands: [openDoor],
    evolve: {
      'door.opened.v1': (state, _payload, { revision }) => {
        if (revision === 2) throw new RangeError('two is too much');
        return state;
      },
    },
    decide: { 'door.open': () => opens({}) },
  });
  assert.throws(
    () => given(faulty, [opens({}), opens({}), opens({})]),
    (error) => {
      assert.ok(error instanceof MillraceError && error.cause instanceof RangeError);
      assert.match(error.message, /'door.opened.v1' at revision 2 of 'house.door.v1-test-given'/);
      assert.deepEqual(error.details, {
        stream: 'house.door.v1-test-given',
        revision: 2,
        type: 'door.opened.v1',
      });
      return true;
    },
  );
});

test('a decision gets time, ids and user from its context', () => {
  const stamped = defineEvent('door.opened.v1', z.object({ at: z.number(), id: z.string() }));
  const door = defineAggregate({
    ...base,
    events: [stamped],
    commands: [openDoor],
    evolve: { 'door.opened.v1': () => ({ isOpen: true }) },
    decide: {
      'door.open': (_payload, _state, { nowMs, nextId, user }) =>
        stamped({ at: nowMs, id: user?.id ?? nextId() }),
    },
  });
  given(door, [])
    .when(openDoor({}), { nowMs: 7, user: { id: 'u-1' } })
    .then([stamped({ at: 7, id: 'u-1' })]);
  given(door, [])
    .when(openDoor({}), { nowMs: 8, nextId: () => 'id-1' })
    .then([stamped({ at: 8, id: 'id-1' })]);
});

test('opening twice is rejected', () => {
  given(account, [opened({ owner: 'ada' })])
    .when(open({ owner: 'bob' }))
    .thenRejected('already-open');
});

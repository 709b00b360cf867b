import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { createCommandHandler } from '../aggregates/create-command-handler.ts';
import {
  account,
  deposit,
  deposited,
  open,
  withdraw,
  withdrawn,
} from '../testing/support/aggregates/example-account.ts';
import { createEnvelope, type NewEvent } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';
import { subjectForgotten } from '../store/erasure.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import { startSubscription } from '../subscriptions/subscription-runner.ts';
import { subscription } from '../subscriptions/subscription.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import {
  askCommand,
  dispatchCommands,
  type Reaction,
  type SendCommand,
  toRequests,
} from './reaction.ts';
import { reactor, type RejectionPolicy } from './reactor.ts';
import { startReactor } from './start-reactor.ts';

const retry = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 3 };

/** Deposits the same amount on the savings account after each deposit. */
function mirror(options: { onRejected?: RejectionPolicy; from?: 'start' | 'end' } = {}) {
  const { onRejected = 'dead-letter', from = 'start' } = options;
  return reactor({
    name: 'sub:banking:mirror:v1',
    events: [deposited],
    from,
    onRejected,
    retry,
    on: {
      'account.deposited.v1': ({ payload, aggregate }) =>
        aggregate.id === 'main'
          ? { id: 'savings', command: deposit({ amount: payload.amount }) }
          : undefined,
    },
  });
}

async function rig() {
  const clock = fakeClock();
  const db = openMemory({ clock });
  const accounts = createCommandHandler(db, account, { clock });
  await accounts.handle({ tenant: 'core', id: 'main', command: open({ owner: 'ada' }) });
  const put = (amount: number) =>
    accounts.handle({ tenant: 'core', id: 'main', command: deposit({ amount }) });
  const inSavings = async (): Promise<RecordedEvent[]> =>
    db.store.readStream('banking.account.v1-core-savings').toArray();
  const openSavings = () =>
    accounts.handle({ tenant: 'core', id: 'savings', command: open({ owner: 'ada' }) });
  return {
    clock,
    db,
    accounts,
    put,
    inSavings,
    openSavings,
    send: dispatchCommands({ account: accounts }),
  };
}

const amounts = (events: readonly RecordedEvent[]): number[] =>
  events.flatMap(({ payload }) => (payload as { amount?: number }).amount ?? []);

test('sends the command with the event’s correlation id, and the event as its cause', async () => {
  const { clock, db, put, send, openSavings, inSavings } = await rig();
  await openSavings();
  const { events } = await put(5);
  await using runner = await startReactor(db, mirror(), { send, clock });
  await runner.whenCaughtUp();
  const last = (await inSavings()).at(-1);
  assert.equal(last?.correlationId, events[0]?.correlationId);
  assert.equal(last?.causationId, events[0]?.eventId);
  assert.match(last?.idempotencyKey ?? '', /^core\|banking\|mirror\|/);
});

test('repeats no effect after a reset, in a new process, or as a new version', async () => {
  const { clock, db, put, send, openSavings, inSavings } = await rig();
  await openSavings();
  await put(5);
  await put(6);
  let sends = 0;
  const counting: SendCommand = (request) => {
    sends += 1;
    return send(request);
  };
  {
    await using runner = await startReactor(db, mirror(), { send: counting, clock });
    await runner.whenCaughtUp();
    await runner.reset();
    await until(clock, () => sends === 4);
    await runner.whenCaughtUp();
  }
  const second = { ...mirror(), name: 'sub:banking:mirror:v2' };
  await using runner = await startReactor(db, second, { send: counting, clock });
  await runner.whenCaughtUp();
  assert.equal(sends, 6);
  assert.deepEqual(amounts(await inSavings()), [5, 6]);
});

test('a kill between the command and the checkpoint repeats no effect', async () => {
  const { clock, db, put, send, openSavings, inSavings } = await rig();
  await openSavings();
  await put(5);
  let isKilled = true;
  const losingResults: SendCommand = async (request) => {
    const result = await send(request);
    // The result is lost, although the command took effect.
    if (isKilled) throw new Error('killed');
    return result;
  };
  await using runner = await startReactor(db, mirror(), { send: losingResults, clock });
  await until(clock, async () => (await inSavings()).length === 2);
  isKilled = false;
  await until(clock, () => runner.status.shards[0]?.inFlight === 0);
  assert.deepEqual(amounts(await inSavings()), [5]);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
});

test('a reactor that starts at the end ignores earlier events, also after a restart', async () => {
  const { clock, db, put, send, openSavings, inSavings } = await rig();
  await openSavings();
  await put(5);
  const fromEnd = mirror({ from: 'end' });
  {
    await using runner = await startReactor(db, fromEnd, { send, clock });
    await until(clock, () => runner.status.shards.length === 1);
    await until(clock, () => runner.status.shards[0]?.isLive === true);
  }
  await put(6);
  await using runner = await startReactor(db, fromEnd, { send, clock });
  await runner.whenCaughtUp();
  assert.deepEqual(amounts(await inSavings()), [6]);
});

test('rebuilding a read model triggers no reactor', async () => {
  const { clock, db, put, send, openSavings } = await rig();
  await openSavings();
  await put(5);
  let sends = 0;
  await using acting = await startReactor(db, mirror(), {
    send: (request) => {
      sends += 1;
      return send(request);
    },
    clock,
  });
  await acting.whenCaughtUp();
  const seen: string[] = [];
  const rebuild = subscription({
    name: 'sub:banking:balances:v2',
    handler: ({ type }) => void seen.push(type),
  });
  await using rebuilding = await startSubscription(db, rebuild, { clock });
  await rebuilding.whenCaughtUp();
  assert.ok(seen.length >= 4);
  assert.equal(sends, 1);
});

test('a rejection is ignored or becomes a dead letter, as configured', async () => {
  for (const onRejected of ['ignore', 'dead-letter'] as const) {
    const { clock, db, put, send } = await rig();
    await put(5);
    await using runner = await startReactor(db, mirror({ onRejected }), { send, clock });
    await until(clock, () => runner.status.shards[0]?.isLive === true);
    const [letter] = await db.subscriptions.deadLetters.list({});
    if (onRejected === 'ignore') assert.equal(letter, undefined);
    else assert.match(letter?.error ?? '', /account\.deposit was rejected \(not-open\)/);
  }
});

test('a rejection is replaced by other commands, each sent once', async () => {
  const { clock, db, accounts, put, send } = await rig();
  await put(50);
  const seen: unknown[] = [];
  const definition = mirror({
    onRejected: ({ reaction, reason, accepted, event }): Reaction[] => {
      seen.push([reaction.id, reason, accepted.length]);
      return [{ id: event.aggregate.id, command: withdraw({ amount: 7 }) }];
    },
  });
  await using runner = await startReactor(db, definition, { send, clock });
  await runner.whenCaughtUp();
  await runner.reset();
  await until(clock, () => seen.length === 2);
  await runner.whenCaughtUp();
  assert.deepEqual(seen[0], ['savings', 'not-open', 0]);
  const { state } = await accounts.load({ tenant: 'core', id: 'main' });
  assert.equal(state.balance, 43);
});

/** Deposits the same amount on each of these accounts after each deposit. */
function spread(onRejected: RejectionPolicy, ids: readonly string[]) {
  return reactor({
    name: 'sub:banking:spread:v1',
    events: [deposited],
    from: 'start',
    onRejected,
    sends: 'together',
    retry,
    on: {
      'account.deposited.v1': ({ payload, aggregate }) =>
        aggregate.id === 'main' ? ids.map((id) => ({ id, command: deposit(payload) })) : [],
    },
  });
}

test('independent commands are sent concurrently, up to a limit', async () => {
  const { clock, db, put } = await rig();
  await put(5);
  const ids = Array.from({ length: 150 }, (_, at) => `s-${at}`);
  const sent: string[] = [];
  let [underWay, most] = [0, 0];
  const send: SendCommand = async ({ id }) => {
    sent.push(id);
    underWay += 1;
    most = Math.max(most, underWay);
    await Promise.resolve();
    underWay -= 1;
  };
  await using runner = await startReactor(db, spread('dead-letter', ids), { send, clock });
  await runner.whenCaughtUp();
  assert.deepEqual([sent, most], [ids, 64]);
});

test('concurrent commands are all sent, and those without a result are sent again', async () => {
  const { clock, db, put, accounts, send } = await rig();
  for (const id of ['a', 'c']) {
    await accounts.handle({ tenant: 'core', id, command: open({ owner: 'ada' }) });
  }
  await put(5);
  let isDown = true;
  const tried: string[] = [];
  const losingResults: SendCommand = async (request) => {
    tried.push(request.id);
    // b does not exist: that rejection is final, but must not be reported before the others are done.
    const result = await send(request);
    if (request.id === 'a' && isDown) throw new Error('the result is lost');
    return result;
  };
  const { deadLetters } = db.subscriptions;
  const each = spread('dead-letter', ['a', 'b', 'c']);
  await using runner = await startReactor(db, each, { send: losingResults, clock });
  await until(clock, () => tried.length === 3);
  assert.equal(await deadLetters.count({}), 0);
  isDown = false;
  await until(clock, async () => (await deadLetters.count({})) === 1);
  assert.deepEqual(tried, ['a', 'b', 'c', 'a', 'b', 'c']);
  await until(clock, () => runner.status.shards[0]?.inFlight === 0);
  for (const id of ['a', 'c']) {
    const stream = await db.store.readStream(`banking.account.v1-core-${id}`).toArray();
    assert.deepEqual(amounts(stream), [5]);
  }
});

test('rejections of concurrent commands are ignored if configured', async () => {
  const { clock, db, put, send } = await rig();
  await put(5);
  await using runner = await startReactor(db, spread('ignore', ['x', 'y']), { send, clock });
  await runner.whenCaughtUp();
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
  assert.throws(() => spread(() => [], []), /cannot be combined with an onRejected function/);
});

test('an unknown command becomes a dead letter immediately', async () => {
  const { clock, db, put } = await rig();
  await put(5);
  await using runner = await startReactor(db, mirror(), { send: dispatchCommands({}), clock });
  await until(clock, () => runner.status.shards[0]?.isLive === true);
  const [letter] = await db.subscriptions.deadLetters.list({});
  assert.equal(letter?.attempts, 1);
  assert.match(letter.error, /unknown command 'account\.deposit'/);
});

test('commands of one type go to the aggregate that they name', async () => {
  const received: string[] = [];
  const receiver = (name: string) => ({ handle: async () => received.push(name) });
  const send = dispatchCommands({
    'banking.account.v2': receiver('v2'),
    account: receiver('account'),
  });
  const request = { tenant: 'core', id: 'a', command: { type: 'account.deposit', payload: {} } };
  await send({ ...request, aggregate: 'banking.account.v2' });
  await send(request);
  assert.deepEqual(received, ['v2', 'account']);
});

test('an event with a forgotten data subject causes no command', async () => {
  const clock = fakeClock();
  const db = openMemory({ clock });
  await appendAbout(db.store, deposited({ amount: 5 }), 'ada');
  await db.store.forget('ada');
  const send: SendCommand = () => Promise.reject(new Error('nothing may be sent'));
  await using runner = await startReactor(db, mirror(), { send, clock });
  await until(clock, () => runner.status.shards[0]?.isLive === true);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
});

test('the key of a command does not depend on its index in the list', () => {
  const event = {
    ...createEnvelope(deposited({ amount: 1 }), {
      tenant: 'core',
      aggregate: { bc: 'banking', type: 'account', id: 'main' },
    }),
    stream: 'banking.account.v1-core-main',
    revision: 0,
    position: '1',
    recordedAt: '2025-09-30T10:00:00.000Z',
  } as unknown as RecordedEvent;
  const source = { service: 'banking', reactor: 'mirror' };
  const a = { id: 'a', command: deposit({ amount: 1 }) };
  const b = { id: 'b', command: deposit({ amount: 1 }) };
  const keys = (...reactions: readonly Reaction[]) =>
    toRequests(event, reactions, source).map(({ idempotencyKey }) => idempotencyKey);
  const [keyOfA, keyOfB] = keys(a, b);
  assert.deepEqual(keys(b, a), [keyOfB, keyOfA]);
  assert.deepEqual(keys(b), [keyOfB]);
  assert.equal(new Set(keys(a, a, { ...a, name: 'other' })).size, 3);
  assert.equal(new Set(keys(a, { ...a, aggregate: 'banking.account.v2' })).size, 2);
  assert.notEqual(
    toRequests({ ...event, eventId: 'another' }, [a], source)[0]?.idempotencyKey,
    keyOfA,
  );
});

test('a command about a forgotten person is a rejected command', async () => {
  const request = { tenant: 'core', id: 'main', command: deposit({ amount: 1 }) };
  const outcome = await askCommand(async () => {
    throw subjectForgotten('zelda');
  }, request);
  assert.ok(outcome.kind === 'rejected');
  assert.equal(outcome.reason, 'SUBJECT_FORGOTTEN');
});

test('a definition without a handler for an event is rejected', () => {
  const on = {} as unknown as { 'account.withdrawn.v1': () => undefined };
  assert.throws(
    () =>
      reactor({
        name: 'sub:banking:broken:v1',
        events: [withdrawn],
        from: 'end',
        onRejected: 'ignore',
        on,
      }),
    (error) => error instanceof MillraceError && error.code === 'REACTOR_INVALID',
  );
});

async function appendAbout(store: EventStore, event: NewEvent, subject: string): Promise<void> {
  const envelope = createEnvelope(event, {
    tenant: 'core',
    aggregate: { bc: 'banking', type: 'account', id: 'main' },
    headers: { dataSubject: subject },
  });
  await store.append('banking.account.v1-core-main', [envelope]);
}

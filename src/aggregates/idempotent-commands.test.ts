import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import type { EventStore } from '../store/event-store.ts';
import { createCommandHandler } from './create-command-handler.ts';
import { defineAggregate } from './define-aggregate.ts';
import {
  account,
  accountWith,
  deposit,
  deposited,
  open,
  opened,
  withdraw,
  type AccountCommand,
} from '../testing/support/aggregates/example-account.ts';
import {
  appendDirectly,
  instantClock,
  listeningObserver,
  tapped,
} from '../testing/support/aggregates/test-doubles.ts';

const stream = 'banking.account.v1-core-a1';
const at = { tenant: 'core', id: 'a1' } as const;
const idempotencyKey = 'core|banking|withdraw|order-1';
const coded = (code: string) => (error: unknown) =>
  error instanceof MillraceError && (error.code as string) === code;

async function accountOf(balance: number, store: EventStore): Promise<void> {
  await appendDirectly(store, stream, [opened({ owner: 'ada' }), deposited({ amount: balance })]);
}

async function eventsIn(store: EventStore): Promise<number> {
  return (await store.readStream(stream).toArray()).length;
}

test('a duplicate gets the first result although the aggregate has changed', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: withdraw({ amount: 60 }), idempotencyKey };
  const first = await accounts.handle(request);
  assert.equal(first.events.length, 2);
  await accounts.handle({ ...at, command: deposit({ amount: 7 }) });
  const count = await eventsIn(db.store);

  await using elsewhere = createCommandHandler(db, account);
  // The current state would reject 60; the first result is returned without a new decision.
  assert.deepEqual(await elsewhere.handle(request), { ...first, isDuplicate: true });
  assert.equal(await eventsIn(db.store), count);
});

test('a duplicate covered by a snapshot is found by its event id', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  const snapshots = openMemory().snapshots;
  const snapped = accountWith({ every: 2 });
  const observer = listeningObserver();
  await using accounts = createCommandHandler({ store: db.store, snapshots }, snapped, {
    observer,
  });
  const request = { ...at, command: withdraw({ amount: 60 }), idempotencyKey };
  const first = await accounts.handle(request);
  for (let each = 0; each < 10; each += 1) {
    await accounts.handle({ ...at, command: deposit({ amount: 7 }) });
    await accounts.flush();
  }
  assert.ok(((await snapshots.load(stream))?.revision ?? 0) > first.revision);
  assert.deepEqual(await accounts.handle(request), { ...first, isDuplicate: true });
  assert.deepEqual(observer.logged, []);
});

test('a duplicate is found although retention hides its events', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: withdraw({ amount: 60 }), idempotencyKey };
  const first = await accounts.handle(request);
  await appendDirectly(db.store, stream, [opened({ owner: 'bob' }), deposited({ amount: 5 })]);
  for (const truncateBefore of [3, 4]) {
    await db.store.setStreamMetadata(stream, { truncateBefore });
    const { state: now } = await accounts.load(at);
    const again = await accounts.handle(request);
    // The state at that revision is lost; the events are not.
    assert.deepEqual(again, { ...first, state: now, isDuplicate: true });
  }
});

test('a command with a key gets the same ids when it is decided again', async () => {
  const ids: string[] = [];
  const counting = defineAggregate({
    bc: 'banking',
    name: 'account',
    version: 1,
    events: [deposited],
    commands: [deposit],
    initial: {},
    evolve: { 'account.deposited.v1': (state) => state },
    decide: {
      'account.deposit': ({ amount }, _state, { nextId }) => {
        ids.push(nextId(), nextId());
        return deposited({ amount });
      },
    },
  });
  await using db = openMemory();
  let raced = false;
  const store = tapped(db.store, {
    async beforeAppend() {
      if (!raced) await appendDirectly(db.store, stream, [deposited({ amount: 1 })]);
      raced = true;
    },
  });
  await using accounts = createCommandHandler({ store }, counting, { clock: instantClock() });
  await accounts.handle({ ...at, command: deposit({ amount: 1 }), idempotencyKey });
  assert.equal(ids.length, 4);
  assert.equal(new Set(ids).size, 2);
  await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  assert.equal(new Set(ids).size, 4);
});

test('a new key is looked up only if part of the history was not read', async () => {
  await using db = openMemory();
  let finds = 0;
  const store = tapped(db.store, { onFind: () => void (finds += 1) });
  const snapshots = openMemory().snapshots;
  // A new handler for each, so no state is cached.
  const handle = async (name: string, command: AccountCommand): Promise<void> => {
    await using accounts = createCommandHandler({ store, snapshots }, accountWith({ every: 3 }));
    const key = `core|banking|deposit|${name}`;
    await accounts.handle({ ...at, idempotencyKey: key, command });
  };
  await handle('a', open({ owner: 'ada' }));
  assert.equal(finds, 1, 'an aggregate of which nothing is to be seen may have been deleted');
  await handle('b', deposit({ amount: 1 }));
  await handle('c', deposit({ amount: 1 }));
  assert.equal(finds, 1);
  await handle('d', deposit({ amount: 1 }));
  assert.equal(finds, 2);
});

test('a late duplicate does not revive a deleted aggregate', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: open({ owner: 'ada' }), idempotencyKey };
  const first = await accounts.handle(request);
  await db.store.deleteStream(stream);
  const { initial: state } = account;
  assert.deepEqual(await accounts.handle(request), { ...first, state, isDuplicate: true });
  assert.equal(await eventsIn(db.store), 0);
});

test('a duplicate with a stale expected revision gets the first result', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: withdraw({ amount: 1 }), idempotencyKey, expected: 1 };
  const first = await accounts.handle(request);
  assert.deepEqual(await accounts.handle(request), { ...first, isDuplicate: true });
});

test('a command sent to two processes takes effect once', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  // Both processes load and decide before either appends.
  const bothDecided = Promise.withResolvers<void>();
  let decided = 0;
  const store = tapped(db.store, {
    beforeAppend: () => {
      decided += 1;
      if (decided === 2) bothDecided.resolve();
      return bothDecided.promise;
    },
  });
  const request = { ...at, command: withdraw({ amount: 60 }), idempotencyKey };
  await using one = createCommandHandler({ store }, account);
  await using other = createCommandHandler({ store }, account);
  const results = await Promise.all([one.handle(request), other.handle(request)]);
  assert.equal(results.filter(({ isDuplicate }) => isDuplicate).length, 1);
  assert.deepEqual({ ...results[0], isDuplicate: true }, { ...results[1], isDuplicate: true });
  assert.equal(await eventsIn(db.store), 4);
});

test('the slower of two processes returns the events of the faster one', async () => {
  const decisions = { fast: 2, slow: 1 };
  const moody = (mood: keyof typeof decisions) =>
    defineAggregate({
      bc: 'banking',
      name: 'account',
      version: 1,
      events: [deposited],
      commands: [deposit],
      initial: { balance: 0 },
      evolve: {
        'account.deposited.v1': ({ balance }, { amount }) => ({ balance: balance + amount }),
      },
      decide: {
        'account.deposit': ({ amount }) =>
          Array.from({ length: decisions[mood] }, () =>
            deposited({ amount: amount * decisions[mood] }),
          ),
      },
    });
  for (const [fast, slow] of [
    [2, 1],
    [1, 2],
  ] as const) {
    Object.assign(decisions, { fast, slow });
    await using db = openMemory();
    await using winner = createCommandHandler(db, moody('fast'));
    const request = { ...at, command: deposit({ amount: 3 }), idempotencyKey };
    const store = tapped(db.store, {
      beforeAppend: async () => void (await winner.handle(request)),
    });
    const clock = instantClock();
    await using loser = createCommandHandler({ store }, moody('slow'), { clock });
    const result = await loser.handle(request);
    assert.equal(result.isDuplicate, true);
    assert.deepEqual(
      result.events.map(({ payload }) => payload.amount),
      Array.from({ length: fast }, () => 3 * fast),
    );
    assert.equal(result.state.balance, 3 * fast * fast);
    assert.equal(await eventsIn(db.store), fast);
  }
});

test('a crash between the append and the result leaves one effect', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  const crashing = tapped(db.store, {
    afterAppend: () => {
      throw new Error('the process died');
    },
  });
  const request = { ...at, command: withdraw({ amount: 60 }), idempotencyKey };
  await using dying = createCommandHandler({ store: crashing }, account);
  await assert.rejects(dying.handle(request), /the process died/);
  await using restarted = createCommandHandler(db, account);
  const { isDuplicate, events, state, revision } = await restarted.handle(request);
  assert.deepEqual([isDuplicate, events.length, state.balance, revision], [true, 2, 39, 3]);
  assert.equal(await eventsIn(db.store), 4);
});

test('a rejected command does not use up its key', async () => {
  await using db = openMemory();
  await accountOf(10, db.store);
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: withdraw({ amount: 20 }), idempotencyKey };
  await assert.rejects(accounts.handle(request), coded('COMMAND_REJECTED'));
  await accounts.handle({ ...at, command: deposit({ amount: 20 }) });
  const { isDuplicate, state } = await accounts.handle(request);
  assert.deepEqual([isDuplicate, state.balance], [false, 10]);
});

test('a key reused with another command is rejected', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  await using accounts = createCommandHandler(db, account);
  await accounts.handle({ ...at, command: withdraw({ amount: 1 }), idempotencyKey });
  const reused = accounts.handle({ ...at, command: deposit({ amount: 1 }), idempotencyKey });
  await assert.rejects(reused, (error) => {
    assert.ok(coded('COMMAND_KEY_REUSED')(error) && error instanceof MillraceError);
    assert.deepEqual(error.details, { idempotencyKey, stream, command: 'account.withdraw' });
    return true;
  });
});

test('a key reused with another payload is rejected if both hashes are known', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  await using accounts = createCommandHandler(db, account);
  const send = (key: string, payloadHash?: string) =>
    accounts.handle({
      ...at,
      command: withdraw({ amount: 1 }),
      idempotencyKey: `core|banking|withdraw|${key}`,
      ...(payloadHash === undefined ? {} : { headers: { payloadHash } }),
    });
  await send('new', 'hash-1');
  await assert.rejects(send('new', 'hash-2'), coded('COMMAND_KEY_REUSED'));
  assert.equal((await send('new', 'hash-1')).isDuplicate, true);
  assert.equal((await send('new')).isDuplicate, true);
  // Stored by an earlier version, without a hash.
  await send('old');
  assert.equal((await send('old', 'hash-1')).isDuplicate, true);
});

test('two processes with one key and two payloads have one effect, and the other is rejected', async () => {
  await using db = openMemory();
  await accountOf(100, db.store);
  const requestOf = (amount: number) => ({
    ...at,
    command: withdraw({ amount }),
    idempotencyKey,
    headers: { payloadHash: `hash of ${amount}` },
  });
  await using winner = createCommandHandler(db, account);
  const store = tapped(db.store, {
    beforeAppend: async () => void (await winner.handle(requestOf(1))),
  });
  await using loser = createCommandHandler({ store }, account, { clock: instantClock() });
  await assert.rejects(loser.handle(requestOf(2)), coded('COMMAND_KEY_REUSED'));
  assert.equal((await winner.load(at)).state.balance, 99);
});

test('no hash of a payload with personal data is stored', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  await accounts.handle({
    ...at,
    command: open({ owner: 'ada' }),
    idempotencyKey,
    headers: { payloadHash: 'hash-1', dataSubject: 'ada' },
  });
  const [event] = await db.store.readStream(stream).toArray();
  assert.deepEqual(event?.headers, { dataSubject: 'ada', command: 'account.open' });
});

test('a key reused for another aggregate is rejected when keys are claimed', async () => {
  await using db = openMemory();
  const keyClaims = openMemory().keyClaims;
  await using accounts = createCommandHandler({ store: db.store, keyClaims }, account);
  const command = open({ owner: 'ada' });
  await accounts.handle({ ...at, command, idempotencyKey });
  await using restarted = createCommandHandler({ store: db.store, keyClaims }, account);
  const elsewhere = restarted.handle({ ...at, id: 'a2', command, idempotencyKey });
  await assert.rejects(elsewhere, coded('COMMAND_KEY_REUSED'));
  assert.equal((await restarted.handle({ ...at, command, idempotencyKey })).isDuplicate, true);
});

test('an invalid key is rejected', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  const request = { ...at, command: open({ owner: 'ada' }), idempotencyKey: 'order-1' };
  await assert.rejects(accounts.handle(request), coded('NAME_INVALID'));
});

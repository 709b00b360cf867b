import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { hasCode } from '../foundation/error.ts';
import { createCommandHandler } from './create-command-handler.ts';
import {
  account,
  accountWith,
  deposit,
  deposited,
  open,
  rename,
  withdraw,
} from '../testing/support/aggregates/example-account.ts';
import { createRememberedStates, rememberedLimits } from './remembered-states.ts';
import {
  appendDirectly,
  instantClock,
  listeningObserver,
  tapped,
} from '../testing/support/aggregates/test-doubles.ts';

const stream = 'banking.account.v1-core-a1';
const at = { tenant: 'core', id: 'a1' } as const;

interface Named {
  readonly name: string;
}

const remembering = () => createRememberedStates<Named>(accountWith({}).snapshot as never);
const noted = (revision: number, name: string) => ({
  tenant: 'core',
  state: { name },
  revision,
  eventId: `e${revision}`,
  snapshotRevision: -1,
  sinceMs: 1,
});

test('recall returns a copy, and an older state does not replace a newer one', () => {
  const states = remembering();
  assert.equal(states.recall('a'), undefined);
  states.remember('a', noted(5, 'five'));
  states.remember('a', noted(4, 'four'));
  const [one, two] = [states.recall('a'), states.recall('a')];
  assert.deepEqual(one, noted(5, 'five'));
  assert.notEqual(one?.state, two?.state);
  states.evict('a');
  states.remember('a', noted(4, 'four'));
  assert.equal(states.recall('a')?.revision, 4);
});

test('the cache is bounded in states and characters and evicts the least recently used', () => {
  const states = remembering();
  for (let index = 0; index <= rememberedLimits.statesMax; index += 1) {
    states.remember(`s${index}`, noted(0, 'x'));
    states.recall('s0');
  }
  assert.ok(states.recall('s0'));
  assert.equal(states.recall('s1'), undefined);
  assert.ok(states.recall('s2'));
  const long = 'x'.repeat(rememberedLimits.stateCharsMax - 100);
  const room = Math.floor(rememberedLimits.charsMax / long.length);
  for (let index = 0; index < 2 * room; index += 1) states.remember(`l${index}`, noted(0, long));
  assert.equal(states.recall('s0'), undefined);
  assert.equal(states.recall(`l${room - 1}`), undefined);
  assert.ok(states.recall(`l${2 * room - 1}`));
});

test('a state that is too long or not JSON is not cached, and not encoded each time', () => {
  const states = remembering();
  states.remember('long', noted(0, 'x'.repeat(rememberedLimits.stateCharsMax)));
  assert.equal(states.recall('long'), undefined);
  states.remember('long', noted(rememberedLimits.longForEvents - 1, 'short'));
  assert.equal(states.recall('long'), undefined);
  states.remember('long', noted(rememberedLimits.longForEvents, 'short'));
  assert.deepEqual(states.recall('long')?.state, { name: 'short' });
  states.remember('date', { ...noted(0, ''), state: { name: new Date(0) as never } });
  assert.equal(states.recall('date'), undefined);
});

test('a cached state that cannot be decoded is rebuilt from its events', async () => {
  await using db = openMemory();
  const broken = accountWith({
    decode: () => {
      throw new Error('not mine');
    },
  });
  await using accounts = createCommandHandler(db, broken);
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  for (const balance of [1, 2, 3]) {
    const { state } = await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
    assert.equal(state.balance, balance);
  }
});

function watched() {
  const db = openMemory();
  const seen = { reads: 0, finds: 0 };
  const store = tapped(db.store, {
    onRead: () => void (seen.reads += 1),
    onFind: () => void (seen.finds += 1),
  });
  const observer = listeningObserver();
  const accounts = createCommandHandler({ store }, account, { clock: instantClock(), observer });
  return { inner: db.store, store, seen, observer, accounts };
}

test('commands after the first read nothing and get the same result', async () => {
  const { inner, seen, accounts } = watched();
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  for (let count = 1; count <= 5; count += 1) {
    const { state, revision } = await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
    assert.deepEqual(
      { state, revision },
      { state: { owner: 'ada', balance: count }, revision: count },
    );
    // A caller may modify the state that it received.
    (state as { balance: number }).balance = 1_000;
  }
  assert.deepEqual(seen, { reads: 0, finds: 0 });
  assert.equal((await createCommandHandler({ store: inner }, account).load(at)).state.balance, 5);
});

test('a duplicate key is found, or rejected with another command, without reading the stream', async () => {
  const { seen, accounts } = watched();
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  const idempotencyKey = 'core|banking|deposit|order-1';
  const first = await accounts.handle({ ...at, command: deposit({ amount: 7 }), idempotencyKey });
  assert.deepEqual(seen, { reads: 0, finds: 1 });
  const again = await accounts.handle({ ...at, command: deposit({ amount: 7 }), idempotencyKey });
  assert.deepEqual(again, { ...first, isDuplicate: true });
  await assert.rejects(
    accounts.handle({ ...at, command: rename({ owner: 'bob' }), idempotencyKey }),
    (error) => hasCode(error, 'COMMAND_KEY_REUSED'),
  );
});

test('events appended by another writer are read without a backoff', async () => {
  const { inner, observer, accounts } = watched();
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await appendDirectly(inner, stream, [deposited({ amount: 10 })]);
  const { state } = await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  assert.equal(state.balance, 11);
  assert.equal(observer.counted.get('command_conflicts_total'), 1);
});

test('a rejected or unchanged command is decided on the state read from the store', async () => {
  const { inner, accounts } = watched();
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await appendDirectly(inner, stream, [deposited({ amount: 10 })]);
  const { state } = await accounts.handle({ ...at, command: withdraw({ amount: 10 }) });
  assert.equal(state.balance, 0);
  await appendDirectly(inner, stream, [deposited({ amount: 10 })]);
  const unchanged = await accounts.handle({ ...at, command: rename({ owner: 'ada' }) });
  assert.deepEqual(unchanged.state, { owner: 'ada', balance: 10 });
  await assert.rejects(accounts.handle({ ...at, command: withdraw({ amount: 11 }) }), (error) =>
    hasCode(error, 'COMMAND_REJECTED'),
  );
});

test('a deleted aggregate starts from its initial state although its state is cached', async () => {
  const { inner, accounts } = watched();
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  await inner.deleteStream(stream);
  await assert.rejects(accounts.handle({ ...at, command: deposit({ amount: 1 }) }), (error) =>
    hasCode(error, 'COMMAND_REJECTED'),
  );
  const { state } = await accounts.handle({ ...at, command: open({ owner: 'bob' }) });
  assert.deepEqual(state, { owner: 'bob', balance: 0 });
});

test('a handler without retries never decides on a cached state', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account, { conflictRetriesMax: 0 });
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await appendDirectly(db.store, stream, [deposited({ amount: 10 })]);
  const { state } = await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  assert.equal(state.balance, 11);
});

test('a state with personal data is not cached', async () => {
  const { seen, inner, accounts } = watched();
  await accounts.handle({
    ...at,
    command: open({ owner: 'ada' }),
    headers: { dataSubject: 'ada' },
  });
  await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  assert.equal(seen.reads, 1);
  await inner.forget('ada');
  const { state } = await accounts.load(at);
  assert.equal(state.owner, null);
});

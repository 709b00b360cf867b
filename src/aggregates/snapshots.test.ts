import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import type { EventStore } from '../store/event-store.ts';
import { subjectHeader } from '../store/erasure.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createCommandHandler } from './create-command-handler.ts';
import {
  account,
  accountWith,
  deposit,
  deposited,
  open,
  opened,
} from '../testing/support/aggregates/example-account.ts';
import { keyClaimsConformance } from '../testing/conformance/aggregates/key-claims.ts';
import { type SnapshotStore } from './snapshot-store.ts';
import { isSnapshotDue } from './snapshots.ts';
import { snapshotStoreConformance } from '../testing/conformance/aggregates/snapshot-store.ts';
import {
  appendDirectly,
  failingSnapshots,
  listeningObserver,
  tapped,
} from '../testing/support/aggregates/test-doubles.ts';

const stream = 'banking.account.v1-core-a1';
const at = { tenant: 'core', id: 'a1' } as const;

for (const { name, run } of snapshotStoreConformance(async () => openMemory().snapshots)) {
  test(`memory snapshots: ${name}`, run);
}
for (const { name, run } of keyClaimsConformance(async () => openMemory().keyClaims)) {
  test(`memory key claims: ${name}`, run);
}

async function deposits(store: EventStore, count: number): Promise<void> {
  await appendDirectly(store, stream, [
    opened({ owner: 'ada' }),
    ...Array.from({ length: count - 1 }, () => deposited({ amount: 1 })),
  ]);
}

/** Number of events read from the store since the last call. */
function counting(inner: EventStore): { readonly store: EventStore; readonly taken: () => number } {
  let events = 0;
  const store = tapped(inner, { onRead: (count) => void (events += count) });
  const taken = (): number => {
    const since = events;
    events = 0;
    return since;
  };
  return { store, taken };
}

test('an aggregate of 10,000 events reads at most 100 of them', async () => {
  await using db = openMemory();
  const { store, taken } = counting(db.store);
  const snapshots = openMemory().snapshots;
  const observer = listeningObserver();
  await using accounts = createCommandHandler({ store, snapshots }, account, { observer });
  await deposits(db.store, 9_800);
  assert.equal((await accounts.load(at)).state.balance, 9_799);
  assert.equal(taken(), 9_800);
  await accounts.flush();
  for (let each = 0; each < 200; each += 1) {
    await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
    await accounts.flush();
    assert.ok(taken() <= 100);
  }
  assert.equal(observer.counted.get('snapshots_taken_total saved'), 3);
  await using restarted = createCommandHandler({ store, snapshots }, account);
  assert.deepEqual(await restarted.load(at), {
    state: { owner: 'ada', balance: 9_999 },
    revision: 9_999,
  });
  assert.ok(taken() <= 100);
});

test('a snapshot is due by event count, or by age if there are new events', () => {
  const policy = { every: 100, afterMs: 1_000 };
  const due = (events: number, sinceMs: number | undefined) =>
    isSnapshotDue(policy, { events, sinceMs, nowMs: 5_000 });
  assert.equal(due(0, 0), false);
  assert.equal(due(1, 4_001), false);
  assert.equal(due(1, 4_000), true);
  assert.equal(due(99, undefined), false);
  assert.equal(due(100, undefined), true);
  const byNumber = { every: 100, afterMs: undefined };
  assert.equal(isSnapshotDue(byNumber, { events: 99, sinceMs: 0, nowMs: 5_000 }), false);
});

test('an aggregate with few events gets its snapshot by age', async () => {
  const clock = fakeClock();
  await using db = openMemory({ clock });
  const snapshots = openMemory().snapshots;
  const hourly = accountWith({ afterMs: 3_600_000 });
  await using accounts = createCommandHandler({ store: db.store, snapshots }, hourly, { clock });
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  await accounts.flush();
  assert.equal(await snapshots.load(stream), undefined);
  await clock.advance(3_600_000);
  await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  await accounts.flush();
  const [recorded] = await db.store
    .readStream(stream, { direction: 'backwards', limit: 1 })
    .toArray();
  assert.deepEqual(await snapshots.load(stream), {
    revision: 2,
    eventId: recorded?.eventId,
    state: { owner: 'ada', balance: 2 },
    codeVersion: 1,
    takenAt: '2025-09-30T11:00:00.000Z',
  });
});

test('a snapshot of another code version is ignored and replaced', async () => {
  await using db = openMemory();
  const { store, taken } = counting(db.store);
  const snapshots = openMemory().snapshots;
  await deposits(db.store, 150);
  await using old = createCommandHandler({ store, snapshots }, account);
  await old.load(at);
  await old.flush();
  taken();
  await using bumped = createCommandHandler({ store, snapshots }, accountWith({ codeVersion: 2 }));
  assert.equal((await bumped.load(at)).state.balance, 149);
  assert.equal(taken(), 150);
  await bumped.flush();
  assert.equal((await snapshots.load(stream))?.codeVersion, 2);
  await bumped.load(at);
  assert.equal(taken(), 1);
});

test('an unreadable snapshot is logged and ignored', async () => {
  await using db = openMemory();
  await deposits(db.store, 3);
  const recorded = await db.store.readStream(stream).toArray();
  const good = {
    revision: 2,
    eventId: recorded[2]?.eventId ?? '',
    state: { owner: 'ada', balance: 99 },
    codeVersion: 1,
    takenAt: '2025-09-30T10:00:00.000Z',
  };
  const decode = (json: unknown) => {
    const state = json as typeof good.state;
    if (state.balance < 0) throw new TypeError('not a state');
    return state;
  };
  const broken: readonly unknown[] = [
    { ...good, revision: -1 },
    { ...good, revision: 'two' },
    { ...good, eventId: undefined },
    { ...good, takenAt: 'yesterday' },
    { ...good, state: 'rubbish' },
    { ...good, state: null },
    { ...good, state: [99] },
    { ...good, state: { owner: 'ada', balance: '99' } },
    { ...good, state: { owner: 'ada', balance: [99] } },
    { ...good, state: { owner: 'ada', balance: -1 } },
    null,
  ];
  for (const snapshot of broken) {
    const snapshots = { load: async () => snapshot, save: async () => undefined } as SnapshotStore;
    const observer = listeningObserver();
    const careful = accountWith({ decode });
    await using accounts = createCommandHandler({ store: db.store, snapshots }, careful, {
      observer,
    });
    assert.deepEqual((await accounts.load(at)).state, { owner: 'ada', balance: 2 });
    assert.deepEqual(observer.logged, ['unreadable snapshot ignored']);
  }
});

test('a failing snapshot store never fails a command', async () => {
  await using db = openMemory();
  const observer = listeningObserver();
  const snapped = accountWith({ every: 1 });
  const snapshots = failingSnapshots();
  await using accounts = createCommandHandler({ store: db.store, snapshots }, snapped, {
    observer,
  });
  const { state } = await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  assert.equal(state.owner, 'ada');
  assert.equal(await accounts.flush(), true);
  assert.deepEqual(observer.logged, ['unreadable snapshot ignored', 'snapshot not saved']);
});

test('a slow snapshot store never delays a command, and flush respects its deadline', async () => {
  const clock = fakeClock();
  await using db = openMemory();
  const slow = Promise.withResolvers<void>();
  const saved: number[] = [];
  const snapshots: SnapshotStore = {
    load: async () => undefined,
    async save(_stream, { revision }) {
      await slow.promise;
      saved.push(revision);
    },
  };
  const snapped = accountWith({ every: 1 });
  const accounts = createCommandHandler({ store: db.store, snapshots }, snapped, { clock });
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  for (let each = 0; each < 9; each += 1) {
    await accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  }
  const flushed = accounts.flush({ deadlineMs: 1_000 });
  await clock.advance(1_000);
  assert.equal(await flushed, false);
  slow.resolve();
  await accounts[Symbol.asyncDispose]();
  assert.equal(clock.sleepers, 0);
  assert.equal(saved.at(-1), 9);
  assert.ok(saved.length < 10, 'only the last waiting snapshot of a stream is saved');
});

test('a snapshot does not revive a deleted aggregate', async () => {
  await using db = openMemory();
  const snapshots = openMemory().snapshots;
  const observer = listeningObserver();
  const snapped = accountWith({ every: 2 });
  await using accounts = createCommandHandler({ store: db.store, snapshots }, snapped, {
    observer,
  });
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  await accounts.flush();
  await db.store.deleteStream(stream);
  assert.deepEqual(await accounts.load(at), { state: account.initial, revision: -1 });
  assert.deepEqual(observer.logged, ['snapshot ignored: its last event no longer exists']);
  await accounts.handle({ ...at, command: open({ owner: 'bob' }) });
  await accounts.flush();
  assert.deepEqual((await accounts.load(at)).state, { owner: 'bob', balance: 0 });
});

test('a snapshot of another history at the same revision is ignored', async () => {
  await using db = openMemory();
  await deposits(db.store, 3);
  const snapshots = openMemory().snapshots;
  await snapshots.save(stream, {
    revision: 1,
    eventId: 'of-a-store-that-was-restored-since',
    state: { owner: 'mallory', balance: 1_000 },
    codeVersion: 1,
    takenAt: '2025-09-30T10:00:00.000Z',
  });
  await using accounts = createCommandHandler({ store: db.store, snapshots }, account);
  assert.deepEqual((await accounts.load(at)).state, { owner: 'ada', balance: 2 });
});

test('history below a snapshot may be truncated', async () => {
  await using db = openMemory();
  await deposits(db.store, 120);
  const snapshots = openMemory().snapshots;
  await using accounts = createCommandHandler({ store: db.store, snapshots }, account);
  const { state } = await accounts.load(at);
  await accounts.flush();
  await db.store.setStreamMetadata(stream, { truncateBefore: 119 });
  await db.store.scavenge();
  assert.deepEqual(await accounts.load(at), { state, revision: 119 });
});

test('a snapshot with data of one person is encrypted, and ignored after forget', async () => {
  await using db = openMemory();
  const headers = { [subjectHeader]: 'person-1' };
  const snapshots = openMemory().snapshots;
  const roles = { store: db.store, snapshots };
  await using accounts = createCommandHandler(roles, accountWith({ every: 1 }));
  await accounts.handle({ ...at, command: open({ owner: 'ada' }), headers });
  await accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  await accounts.flush();
  const stored = await snapshots.load(stream);
  assert.equal(stored?.revision, 1);
  assert.doesNotMatch(JSON.stringify(stored), /ada/);
  // Only a state from the snapshot has both events: the stream no longer shows the first one.
  await db.store.setStreamMetadata(stream, { truncateBefore: 1 });
  assert.deepEqual((await accounts.load(at)).state, { owner: 'ada', balance: 5 });
  await accounts.handle({ ...at, command: deposit({ amount: 2 }) });
  await accounts.flush();
  assert.doesNotMatch(JSON.stringify(await snapshots.load(stream)), /ada/);
  await db.store.setStreamMetadata(stream, {});
  await db.store.forget('person-1');
  assert.deepEqual((await accounts.load(at)).state, { owner: null, balance: 7 });
});

test('data of several persons is not stored in a snapshot', async () => {
  await using db = openMemory();
  const headers = { [subjectHeader]: 'person-1' };
  const snapshots = openMemory().snapshots;
  await using accounts = createCommandHandler(
    { store: db.store, snapshots },
    accountWith({ every: 1 }),
  );
  await accounts.handle({ ...at, command: open({ owner: 'ada' }), headers });
  await accounts.handle({
    ...at,
    command: deposit({ amount: 5 }),
    headers: { [subjectHeader]: 'person-2' },
  });
  await accounts.flush();
  // The first event has one subject only; the snapshot of it is encrypted.
  assert.equal((await snapshots.load(stream))?.revision, 0);

  const impersonal = accountWith({
    every: 1,
    holdsPersonalData: false,
    encode: ({ balance }) => ({ balance }),
    decode: (json) => ({ owner: 'unknown', ...(json as { readonly balance: number }) }),
  });
  await using stripped = createCommandHandler({ store: db.store, snapshots }, impersonal);
  await stripped.load(at);
  await stripped.flush();
  assert.deepEqual((await snapshots.load(stream))?.state, { balance: 5 });
  assert.deepEqual((await stripped.load(at)).state, { owner: 'unknown', balance: 5 });
});

test('a state that JSON cannot represent is not saved', async () => {
  await using db = openMemory();
  const snapshots = openMemory().snapshots;
  for (const value of [new Date(0), new Map(), Number.NaN, 1n, 'x'.repeat(17 * 1_048_576)]) {
    const observer = listeningObserver();
    const odd = accountWith({ every: 1, encode: () => ({ value }) });
    await using accounts = createCommandHandler({ store: db.store, snapshots }, odd, { observer });
    await appendDirectly(db.store, stream, [deposited({ amount: 1 })]);
    await accounts.load(at);
    await accounts.flush();
    assert.deepEqual(observer.logged, ['snapshot not saved']);
  }
  assert.equal(await snapshots.load(stream), undefined);
});

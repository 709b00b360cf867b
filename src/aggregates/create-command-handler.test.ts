import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import { subjectHeader } from '../store/erasure.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createCommandHandler, commandHandlerLimits } from './create-command-handler.ts';
import { defineAggregate } from './define-aggregate.ts';
import {
  account,
  deposit,
  deposited,
  open,
  opened,
  rename,
  renamed,
  withdraw,
} from '../testing/support/aggregates/example-account.ts';
import {
  appendDirectly,
  instantClock,
  listeningObserver,
  tapped,
} from '../testing/support/aggregates/test-doubles.ts';

const stream = 'banking.account.v1-core-a1';
const at = { tenant: 'core', id: 'a1' } as const;
const coded = (code: string) => (error: unknown) =>
  error instanceof MillraceError && (error.code as string) === code;

test('a command for another aggregate of the same name is rejected', async () => {
  await using db = openMemory();
  await using handler = createCommandHandler(db, account);
  const request = { ...at, command: deposit({ amount: 1 }) };
  await handler.handle({ ...at, command: open({ owner: 'ada' }) });
  await assert.rejects(
    handler.handle({ ...request, aggregate: 'crm.account.v1' }),
    coded('COMMAND_UNKNOWN'),
  );
  const { revision } = await handler.handle({ ...request, aggregate: account.category });
  assert.equal(revision, 1);
});

test('a command produces events, and the events produce a state', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  const result = await accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  assert.deepEqual(result.state, { owner: 'ada', balance: 5 });
  assert.deepEqual([result.revision, result.isDuplicate], [1, false]);
  assert.deepEqual(
    result.events.map(({ type, payload, revision }) => ({ type, payload, revision })),
    [{ ...deposited({ amount: 5 }), revision: 1 }],
  );
  assert.deepEqual(await accounts.load(at), { state: result.state, revision: 1 });
  const [, recorded] = await db.store.readStream(stream).toArray();
  const { position, recordedAt: _recordedAt, ...stored } = recorded ?? assert.fail();
  assert.deepEqual(stored, result.events[0]);
  assert.equal(position, result.position);
});

test('an aggregate without events has its initial state', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  assert.deepEqual(await accounts.load(at), { state: account.initial, revision: -1 });
});

test('a command without changes stores no events', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  assert.deepEqual(await accounts.handle({ ...at, command: rename({ owner: 'ada' }) }), {
    state: { owner: 'ada', balance: 0 },
    events: [],
    revision: 0,
    position: undefined,
    isDuplicate: false,
  });
});

test('a rejected command stores no events', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  const rejected = accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  await assert.rejects(rejected, coded('COMMAND_REJECTED'));
  assert.equal(await db.store.streamInfo(stream), undefined);
});

test('the handler sets correlation, causation and event ids', async () => {
  await using db = openMemory();
  const clock = fakeClock();
  await using accounts = createCommandHandler(db, account, { clock });
  const user = { id: 'u-1' };
  const [first] = (await accounts.handle({ ...at, command: open({ owner: 'ada' }), user })).events;
  assert.ok(first);
  assert.match(first.correlationId, /^[0-9a-f-]{36}$/);
  assert.match(first.causationId ?? '', /^[0-9a-f-]{36}$/);
  assert.equal(first.occurredAt, '2025-09-30T10:00:00.000Z');
  assert.deepEqual(first.aggregate, { bc: 'banking', type: 'account', id: 'a1', version: 1 });
  assert.deepEqual([first.user, first.headers], [user, { command: 'account.open' }]);

  const { events } = await accounts.handle({
    ...at,
    command: deposit({ amount: 100 }),
    idempotencyKey: 'core|banking|deposit|order-1',
    correlationId: first.correlationId,
    headers: { source: 'test' },
  });
  const [second] = events;
  assert.equal(second?.correlationId, first.correlationId);
  assert.equal(second.causationId, idFromKey('core|banking|deposit|order-1#command'));
  assert.equal(second.eventId, idFromKey('core|banking|deposit|order-1#0'));
  assert.equal(second.idempotencyKey, 'core|banking|deposit|order-1');
  assert.deepEqual(second.headers, { source: 'test', command: 'account.deposit' });
  assert.equal(second.aggregate.version, 2);

  const { events: two } = await accounts.handle({
    ...at,
    command: withdraw({ amount: 60 }),
    causationId: second.eventId,
  });
  assert.deepEqual(
    two.map(({ causationId }) => causationId),
    [second.eventId, second.eventId],
  );
  assert.equal(new Set(two.map(({ eventId }) => eventId)).size, 2);
});

test('a tenant with a hyphen must be known, and a key must belong to the same tenant', async () => {
  await using db = openMemory();
  const command = open({ owner: 'ada' });
  await using strangers = createCommandHandler(db, account);
  const unknown = strangers.handle({ tenant: 'demo-za', id: 'a1', command });
  await assert.rejects(unknown, coded('TENANT_UNKNOWN'));
  await using known = createCommandHandler(db, account, { tenants: new Set(['demo-za']) });
  const { events } = await known.handle({ tenant: 'demo-za', id: 'a1', command });
  assert.equal(events[0]?.stream, 'banking.account.v1-demo-za-a1');
  const foreign = known.handle({ ...at, command, idempotencyKey: 'demo-za|banking|open|a1' });
  await assert.rejects(foreign, coded('TENANT_MISMATCH'));
});

test('the expected revision is checked before the decision', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  const command = deposit({ amount: 5 });
  for (const expected of [0, 'exists'] as const) {
    const early = accounts.handle({ ...at, command, expected });
    await assert.rejects(early, coded('VERSION_CONFLICT'));
  }
  await accounts.handle({ ...at, command: open({ owner: 'ada' }), expected: 'none' });
  await accounts.handle({ ...at, command, expected: 0 });
  await accounts.handle({ ...at, command, expected: 'exists' });
  for (const expected of [0, 9, 'none'] as const) {
    const late = accounts.handle({ ...at, command, expected });
    await assert.rejects(late, (error) => {
      assert.ok(coded('VERSION_CONFLICT')(error) && error instanceof MillraceError);
      assert.deepEqual(error.details, { stream, expected, actual: 2 });
      return true;
    });
  }
});

test('after a conflict, the command is decided again on the new state', async () => {
  await using db = openMemory();
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' }), deposited({ amount: 10 })]);
  let races = 3;
  const store = tapped(db.store, {
    async beforeAppend() {
      if (races-- > 0) await appendDirectly(db.store, stream, [deposited({ amount: 1 })]);
    },
  });
  const clock = instantClock();
  const observer = listeningObserver();
  await using accounts = createCommandHandler({ store }, account, { clock, observer });
  const { state, revision } = await accounts.handle({ ...at, command: withdraw({ amount: 4 }) });
  assert.deepEqual([state.balance, revision], [9, 5]);
  assert.equal(observer.counted.get('command_conflicts_total'), 3);
  assert.equal(clock.slept.length, 3);
  assert.ok(clock.slept.every((ms) => ms >= 1 && ms <= 42));
});

test('a command that the new state forbids is rejected after a conflict', async () => {
  await using db = openMemory();
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' })]);
  let raced = false;
  const store = tapped(db.store, {
    async beforeAppend() {
      if (!raced) await appendDirectly(db.store, stream, [renamed({ owner: 'bob' })]);
      raced = true;
    },
  });
  await using accounts = createCommandHandler({ store }, account, { clock: instantClock() });
  const { events, state } = await accounts.handle({ ...at, command: rename({ owner: 'bob' }) });
  assert.deepEqual([events, state.owner], [[], 'bob']);
});

test('repeated conflicts end with the conflict error', async () => {
  await using db = openMemory();
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' })]);
  let appends = 0;
  const store = tapped(db.store, {
    async beforeAppend() {
      appends += 1;
      await appendDirectly(db.store, stream, [deposited({ amount: 1 })]);
    },
  });
  const clock = instantClock();
  await using accounts = createCommandHandler({ store }, account, { clock, conflictRetriesMax: 2 });
  const lost = accounts.handle({ ...at, command: deposit({ amount: 5 }) });
  await assert.rejects(lost, coded('VERSION_CONFLICT'));
  assert.equal(appends, 3);

  appends = 0;
  const expecting = accounts.handle({ ...at, command: deposit({ amount: 5 }), expected: 3 });
  await assert.rejects(expecting, coded('VERSION_CONFLICT'));
  assert.equal(appends, 1, 'a command with an expected revision must not be decided again');
});

test('commands for one aggregate do not conflict within a process', async () => {
  await using db = openMemory();
  const observer = listeningObserver();
  await using accounts = createCommandHandler(db, account, { observer });
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  const all = Array.from({ length: 100 }, () =>
    accounts.handle({ ...at, command: deposit({ amount: 1 }) }),
  );
  await Promise.all(all);
  assert.equal((await accounts.load(at)).state.balance, 100);
  assert.equal(observer.counted.get('command_conflicts_total'), undefined);
});

test('a command is rejected when too many commands wait for its aggregate', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  const all = Array.from({ length: commandHandlerLimits.waitingPerAggregateMax + 1 }, () =>
    accounts.handle({ ...at, command: open({ owner: 'ada' }) }),
  );
  const outcomes = await Promise.allSettled(all);
  const last = outcomes.at(-1);
  assert.ok(last?.status === 'rejected' && coded('AGGREGATE_BUSY')(last.reason));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('a waiting command can be aborted without changing the order of the others', async () => {
  await using db = openMemory();
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' })]);
  const appendGate = Promise.withResolvers<void>();
  const store = tapped(db.store, { beforeAppend: () => appendGate.promise });
  const observer = listeningObserver();
  await using accounts = createCommandHandler({ store }, account, { observer });
  const stopping = new AbortController();
  const first = accounts.handle({ ...at, command: deposit({ amount: 1 }) });
  const { signal } = stopping;
  const second = accounts.handle({ ...at, command: deposit({ amount: 2 }), signal });
  const third = accounts.handle({ ...at, command: deposit({ amount: 4 }) });
  stopping.abort();
  await assert.rejects(second, coded('ABORTED'));
  appendGate.resolve();
  assert.deepEqual([(await first).state.balance, (await third).state.balance], [1, 5]);
  assert.equal(observer.counted.get('command_conflicts_total'), undefined);
  const late = accounts.handle({ ...at, command: deposit({ amount: 8 }), signal });
  await assert.rejects(late, coded('ABORTED'));
});

test('an event that evolve cannot apply is never stored', async () => {
  const faulty = defineAggregate({
    bc: 'banking',
    name: 'account',
    version: 1,
    events: [opened],
    commands: [open],
    initial: {},
    evolve: {
      'account.opened.v1': () => {
        throw new Error('cannot');
      },
    },
    decide: { 'account.open': ({ owner }) => opened({ owner }) },
  });
  await using db = openMemory();
  await using accounts = createCommandHandler(db, faulty);
  const failing = accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await assert.rejects(failing, coded('EVENT_UNREADABLE'));
  assert.equal(await db.store.streamInfo(stream), undefined);
});

test('an aggregate whose events have all expired continues at its revision', async () => {
  const clock = fakeClock();
  await using db = openMemory({ clock });
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' })]);
  await db.store.setStreamMetadata(stream, { maxAgeSeconds: 60 });
  await clock.advance(61_000);
  await using accounts = createCommandHandler(db, account, { clock: instantClock() });
  const { state, revision } = await accounts.handle({ ...at, command: open({ owner: 'bob' }) });
  assert.deepEqual([state.owner, revision], ['bob', 1]);
});

test('a deleted aggregate starts from its initial state, and a tombstone is final', async () => {
  await using db = openMemory();
  await using accounts = createCommandHandler(db, account);
  await accounts.handle({ ...at, command: open({ owner: 'ada' }) });
  await db.store.deleteStream(stream);
  assert.deepEqual((await accounts.load(at)).state, account.initial);
  const again = await accounts.handle({ ...at, command: open({ owner: 'bob' }) });
  assert.deepEqual([again.revision, again.events[0]?.revision], [1, 1]);
  assert.deepEqual(await accounts.load(at), { state: again.state, revision: 1 });
  await db.store.tombstoneStream(stream);
  await assert.rejects(accounts.load(at), coded('STREAM_DELETED'));
});

test('erased payloads are skipped, or passed to the forgotten handler', async () => {
  await using db = openMemory();
  const headers = { [subjectHeader]: 'person-1' };
  await appendDirectly(db.store, stream, [opened({ owner: 'ada' })], headers);
  await appendDirectly(db.store, stream, [deposited({ amount: 5 })]);
  await db.store.forget('person-1');
  await using skipping = createCommandHandler(db, account);
  assert.deepEqual((await skipping.load(at)).state, { owner: null, balance: 5 });

  const mindful = defineAggregate({
    bc: 'banking',
    name: 'account',
    version: 1,
    events: [opened, deposited],
    commands: [],
    initial: { owner: 'unset' },
    evolve: {
      'account.opened.v1': (_state, { owner }) => ({ owner }),
      'account.deposited.v1': (state) => state,
    },
    decide: {},
    forgotten: (_state, { type, payload }) => ({
      owner: `${type} of ${payload.$forgotten.subject}`,
    }),
  });
  await using handler = createCommandHandler(db, mindful);
  assert.deepEqual((await handler.load(at)).state, { owner: 'account.opened.v1 of person-1' });
});

test('an aggregate with a data subject encrypts every event, whatever the command headers say', async () => {
  await using db = openMemory();
  const personal = defineAggregate({
    bc: 'banking',
    name: 'account',
    version: 1,
    events: [opened],
    commands: [open],
    initial: { owner: 'unset' },
    evolve: { 'account.opened.v1': (_state, { owner }) => ({ owner }) },
    decide: { 'account.open': ({ owner }) => opened({ owner }) },
    dataSubject: (tenant, id) => `account:${tenant}:${id}`,
  });
  await using handler = createCommandHandler(db, personal);
  const headers = { [subjectHeader]: 'another-person' };
  await handler.handle({ ...at, command: open({ owner: 'ada' }), headers });
  assert.deepEqual((await handler.load(at)).state, { owner: 'ada' });
  await db.store.forget(`account:${at.tenant}:${at.id}`);
  assert.deepEqual((await handler.load(at)).state, { owner: 'unset' });
});

test('each outcome is counted, and events carry the trace context', async () => {
  await using db = openMemory();
  const listening = listeningObserver();
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const spans: string[] = [];
  const observer: Observer = {
    ...listening,
    span: (name, { command }, parent) => ({
      context: { traceparent },
      set: () => undefined,
      fail: () => spans.push('failed'),
      end: () => spans.push(`${name} ${command} ${parent?.traceparent}`),
    }),
  };
  await using accounts = createCommandHandler(db, account, { observer });
  const command = open({ owner: 'ada' });
  const idempotencyKey = 'core|banking|open|a1';
  const headers = { traceparent: 'parent' };
  const { events } = await accounts.handle({ ...at, command, idempotencyKey, headers });
  assert.deepEqual(events[0]?.headers, { traceparent, command: 'account.open' });
  await accounts.handle({ ...at, command, idempotencyKey });
  await accounts.handle({ ...at, command: rename({ owner: 'ada' }) });
  await assert.rejects(accounts.handle({ ...at, command }));
  await assert.rejects(accounts.handle({ ...at, command, expected: 7 }));
  await assert.rejects(accounts.handle({ tenant: 'Core', id: 'a1', command }));
  assert.deepEqual(
    ['accepted', 'duplicate', 'unchanged', 'rejected', 'conflict', 'failed'].map((outcome) =>
      listening.counted.get(`commands_handled_total ${outcome}`),
    ),
    [1, 1, 1, 1, 1, 1],
  );
  assert.equal(spans[0], 'handle command account.open parent');
  assert.equal(spans.filter((each) => each === 'failed').length, 2);
});

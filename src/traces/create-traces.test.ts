// Flows from a store in memory: indexed events are found, missing ones are reported, and tenants are
// separated.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory, type MemoryEngine } from '../engines/memory/index.ts';
import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { systemClock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { startSubscription, subscription, Terminal } from '../subscriptions/index.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createTraces, type TraceSources, type Traces } from './create-traces.ts';
import { traceSubscription } from './keep-trace-index.ts';
import type { TraceIndex } from './trace-index.ts';

function envelope(eventId: string, more: Partial<DomainEventEnvelope> = {}): DomainEventEnvelope {
  return {
    type: 'item.changed.v1',
    eventId,
    occurredAt: '2025-09-30T10:00:00.000Z',
    correlationId: 'flow',
    tenant: 'core',
    aggregate: { bc: 'rig', type: 'item', id: 'i1' },
    payload: {},
    ...more,
  };
}

function tracesOf(db: MemoryEngine, more: Partial<TraceSources> = {}): Traces {
  return createTraces({
    store: db.store,
    storage: db.subscriptions,
    index: db.traces,
    messagesOf: async () => [],
    whenIndexed: async () => undefined,
    ...more,
  });
}

const stream = 'rig.item.v1-core-i1';

async function indexed(db: MemoryEngine, options?: { notBeforeMs: () => number }): Promise<void> {
  const each = traceSubscription(db.traces, options);
  await using runner = await startSubscription(db, each);
  await runner.whenCaughtUp();
}

const eventIds = ({ nodes }: Awaited<ReturnType<Traces['get']>>): string[] =>
  nodes.flatMap((node) => (node.kind === 'event' ? [node.eventId] : []));

test('a flow is found across streams and among other flows', async () => {
  await using db = openMemory();
  const others = Array.from({ length: 200 }, (_, at) => envelope(`x${at}`, { correlationId: 'x' }));
  await db.store.append(stream, [envelope('a'), ...others, envelope('b')]);
  await db.store.append('rig.item.v1-core-i2', [envelope('c', { causationId: 'a' })]);
  await indexed(db);
  const trace = await tracesOf(db).get('flow');
  assert.deepEqual(eventIds(trace), ['a', 'c', 'b']);
  assert.deepEqual([trace.complete, trace.truncated, trace.missing], [true, false, 0]);
  assert.deepEqual((await tracesOf(db).get('unknown')).nodes, []);
  assert.deepEqual((await tracesOf(db).get('\u0000')).nodes, []);
});

test('an index contains each event once after lost results or a restart', async () => {
  await using db = openMemory();
  await db.store.append(stream, [envelope('a'), envelope('b', { causationId: 'a' })]);
  let isLost = false;
  const index: TraceIndex = {
    ...db.traces,
    async add(entries) {
      await db.traces.add(entries);
      if (isLost) return;
      isLost = true;
      throw new MillraceError('STORE_UNAVAILABLE', 'the result was lost');
    },
  };
  const retry = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 9 };
  const each = { ...traceSubscription(index), retry };
  await using runner = await startSubscription(db, each, { pollMs: 1 });
  await runner.whenCaughtUp();
  await runner.reset();
  await runner.whenCaughtUp();
  assert.deepEqual(eventIds(await tracesOf(db).get('flow')), ['a', 'b']);
  assert.equal(await db.subscriptions.deadLetters.count({}), 0);
});

test('a tenant sees only its part of a flow', async () => {
  await using db = openMemory();
  await db.store.append(stream, [envelope('a')]);
  const theirs = { tenant: 'demo', causationId: 'a' };
  await db.store.append('rig.item.v1-demo-i1', [envelope('b', theirs)]);
  await indexed(db);
  const traces = tracesOf(db, {
    messagesOf: async (sources) =>
      sources.flatMap(({ sourceStreamId, sourceEventId }) =>
        ['core', 'demo'].map((tenantId) => ({
          id: `${sourceEventId} ${tenantId}`,
          sourceStreamId,
          sourceEventId,
          integrationType: 'webhook:x',
          eventType: 'x',
          tenantId,
          status: 'PENDING',
          attempts: 0,
          maxAttempts: 1,
          dueAt: new Date(0),
          createdAt: new Date(0),
          updatedAt: new Date(0),
          sentAt: undefined,
          lastError: undefined,
        })),
      ),
  });
  assert.equal(eventIds(await traces.get('flow')).length, 2);
  const trace = await traces.get('flow', { tenant: 'demo' });
  assert.deepEqual(
    trace.nodes.map((node) => (node.kind === 'delivery' ? node.message : node.kind)),
    ['event', 'b demo'],
  );
  assert.deepEqual((await traces.get('flow', { tenant: 'other' })).nodes, []);
});

test('deleted events are counted as missing', async () => {
  await using db = openMemory();
  await db.store.append(stream, [envelope('a')]);
  await db.store.append('rig.item.v1-core-i2', [envelope('b')]);
  await db.store.append('rig.item.v1-core-i3', [envelope('c')]);
  await indexed(db);
  await db.store.deleteStream(stream);
  await db.store.tombstoneStream('rig.item.v1-core-i2');
  const trace = await tracesOf(db).get('flow');
  assert.deepEqual([eventIds(trace), trace.missing], [['c'], 2]);
});

test('a flow with more events than the limit is truncated and reports it', async () => {
  await using db = openMemory();
  await db.store.append(
    stream,
    Array.from({ length: 1_001 }, (_, at) => envelope(`e${at}`)),
  );
  await indexed(db);
  const trace = await tracesOf(db).get('flow');
  assert.deepEqual([eventIds(trace).length, trace.truncated], [1_000, true]);
});

test('a lagging index is reported as incomplete, and a failed wait as an error', async () => {
  await using db = openMemory();
  const clock = fakeClock();
  const waitStarted = Promise.withResolvers<AbortSignal>();
  const whenIndexed = (signal: AbortSignal): Promise<void> => {
    waitStarted.resolve(signal);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('ended')), { once: true });
    });
  };
  const trace = tracesOf(db, { clock, whenIndexed }).get('flow', { waitMs: 500 });
  const signal = await waitStarted.promise;
  await clock.advance(500);
  assert.equal((await trace).complete, false);
  assert.equal(signal.aborted, true);

  const broken = async (): Promise<void> => {
    throw new Error('no connection');
  };
  await assert.rejects(tracesOf(db, { whenIndexed: broken }).get('flow'), /no connection/);
  const caller = AbortSignal.abort(new Error('caller aborted'));
  await assert.rejects(
    tracesOf(db, { clock: systemClock, whenIndexed }).get('flow', { signal: caller }),
    /caller aborted/,
  );
});

test('handlers are shown as passed, waiting, dead or pending', async () => {
  await using db = openMemory();
  const wanted = { filter: { types: ['item.changed.v1'] } };
  const start = (name: string, handler: () => void, more: object = {}) =>
    startSubscription(
      db,
      subscription({ name: `sub:rig:${name}:v1`, ...wanted, ...more, handler }),
      { checkpointMs: 1 },
    );
  const fail = (): void => {
    throw new Terminal('never');
  };
  await using done = await start('done', () => undefined);
  await using dead = await start('dead', fail, { onDeadLetter: 'park' });
  const other = { filter: { types: ['item.closed.v1'] } };
  await using unrelated = await start('other', () => undefined, other);
  assert.equal(unrelated.state, 'started');
  await db.subscriptions.checkpoints.open('sub:rig:late:v1', 1, wanted.filter);
  await db.store.append(stream, [envelope('a'), envelope('b')]);
  await done.whenCaughtUp();
  await dead.whenCaughtUp();
  await done.stop();
  await dead.stop();
  await indexed(db);
  const { nodes } = await tracesOf(db).get('flow');
  assert.deepEqual(
    nodes.map((node) =>
      node.kind === 'handler' ? `${node.subscription} ${node.state} ${node.error}` : node.kind,
    ),
    [
      'event',
      'sub:rig:dead:v1 dead never',
      'sub:rig:done:v1 passed null',
      'sub:rig:late:v1 pending null',
      'event',
      'sub:rig:dead:v1 waiting null',
      'sub:rig:done:v1 passed null',
      'sub:rig:late:v1 pending null',
    ],
  );
});

test('events without a valid correlation id and expired events are not indexed', async () => {
  const clock = fakeClock();
  await using db = openMemory({ clock, names: 'open' });
  const odd = [undefined, 7, 'a\u0000b', '\ud800', 'x'.repeat(2_000)];
  const events = odd.map((correlationId, at) =>
    Object.assign(envelope(`o${at}`), { correlationId }),
  );
  await db.store.append(stream, events);
  await db.store.append(stream, [envelope('old')]);
  await clock.advance(1_000);
  const afterMs = clock.now();
  await db.store.append(stream, [envelope('new')]);
  await using runner = await startSubscription(
    db,
    traceSubscription(db.traces, { notBeforeMs: () => afterMs }),
  );
  await runner.whenCaughtUp();
  assert.deepEqual(eventIds(await tracesOf(db).get('flow')), ['new']);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { hasCode } from '../foundation/error.ts';
import { createEventStore } from './create-event-store.ts';
import type { StoreEngine, StreamWrite, WriteOutcome } from './store-engine.ts';
import { newEvent, newEvents, newStream } from '../testing/conformance/store/fixture.ts';

describe('createEventStore', () => {
  test('an engine that returns too few outcomes is an error', async () => {
    const store = createEventStore(stubEngine({ write: async () => [] }));
    await assert.rejects(store.append(newStream(), [newEvent()]), (error) =>
      hasCode(error, 'STORE_CORRUPT'),
    );
  });

  test('an engine without multi-stream appends never gets several streams', async () => {
    const { engine, writes } = recordingEngine();
    const store = createEventStore(engine);
    const appends = [newStream(), newStream()].map((stream) => ({ stream, events: [newEvent()] }));
    await assert.rejects(store.appendMany(appends), (error) => hasCode(error, 'NOT_SUPPORTED'));
    assert.equal(writes.length, 0);
    await store.appendMany(appends.slice(0, 1));
    assert.equal(writes.length, 1);
  });

  test('counts appended and duplicate events separately', async () => {
    const counted: unknown[] = [];
    const kinds = ['appended', 'duplicate'] as const;
    let call = 0;
    const store = createEventStore(
      stubEngine({
        async write() {
          const kind = kinds[call] ?? 'appended';
          call += 1;
          return [{ kind, revision: 2, sequence: 3 }];
        },
      }),
      { observer: { count: (...args) => counted.push(args) } },
    );
    await store.append(newStream(), newEvents(3));
    await store.append(newStream(), newEvents(3));
    assert.deepEqual(counted, [
      ...newEvents(3).map(({ type }) => ['events_published_total', { event_type: type }]),
      ...newEvents(3).map(({ type }) => ['events_duplicates_total', { event_type: type }]),
    ]);
  });

  test('logs the ids of published events without payloads, and no duplicates', async () => {
    const lines: unknown[] = [];
    const other = (): void => assert.fail('only published events are logged');
    const debug = (fields: object, message: string): void =>
      void lines.push({ ...fields, message });
    await using db = openMemory({
      observer: { log: { debug, info: other, warn: other, error: other } },
    });
    const stream = newStream();
    const [first, second] = [newEvent(), { ...newEvent(), causationId: 'c-1' }];
    await db.store.append(stream, [first, second]);
    await db.store.append(stream, [first, second]);
    await assert.rejects(db.store.append(stream, [newEvent()], { expected: 7 }));
    const lineOf = ({ eventId, type, aggregate, correlationId, tenant }: typeof first) => ({
      eventId,
      eventType: type,
      aggregateId: aggregate.id,
      correlationId,
      tenant,
      stream,
      message: 'Event published',
    });
    assert.deepEqual(lines, [
      { ...lineOf(first), causationId: first.causationId },
      { ...lineOf(second), causationId: 'c-1' },
    ]);
  });

  test('a deletion passes the expected revision to the engine', async () => {
    const { engine, writes } = recordingEngine();
    const store = createEventStore(engine);
    await store.deleteStream('account-1', { expected: 4 });
    const [write] = writes[0] ?? [];
    assert.equal(write?.stream, '$$account-1');
    assert.deepEqual(write?.retention, {
      of: 'account-1',
      values: { truncateBefore: Number.MAX_SAFE_INTEGER },
      expected: 4,
    });
  });

  test('a rejected deletion names the stream, not its metadata stream', async () => {
    const outcomes: WriteOutcome[] = [{ kind: 'conflict', actual: 7 }, { kind: 'deleted' }];
    const store = createEventStore(stubEngine({ write: async () => outcomes.splice(0, 1) }));
    await assert.rejects(store.deleteStream('account-1', { expected: 4 }), (error) => {
      assert.ok(hasCode(error, 'VERSION_CONFLICT'));
      assert.deepEqual(error.details, { stream: 'account-1', expected: 4, actual: 7 });
      return true;
    });
    await assert.rejects(store.deleteStream('account-1'), (error) => {
      assert.ok(hasCode(error, 'STREAM_DELETED'));
      assert.deepEqual(error.details, { stream: 'account-1' });
      return true;
    });
  });

  test('the engine is closed only once', async () => {
    let closed = 0;
    const store = createEventStore(
      stubEngine({
        async [Symbol.asyncDispose]() {
          closed += 1;
        },
      }),
    );
    await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]);
    assert.equal(closed, 1);
  });
});

function recordingEngine() {
  const writes: (readonly StreamWrite[])[] = [];
  const engine = stubEngine({
    async write(each) {
      writes.push(each);
      return each.map(() => ({ kind: 'appended', revision: 0, sequence: writes.length }));
    },
  });
  return { engine, writes };
}

/** An empty engine. */
function stubEngine(parts: Partial<StoreEngine>): StoreEngine {
  return {
    capabilities: {
      multiStreamAppend: false,
      callerTransaction: false,
      durable: false,
      crossProcess: false,
    },
    write: async () => [],
    readStream: async () => ({ state: undefined, rows: [], end: true }),
    readAll: async ({ after }) => ({ rows: [], considered: after, end: true }),
    findEvent: async () => undefined,
    head: async () => 0,
    whenMore: () => new Promise(() => undefined),
    scavenge: async () => ({ streamsDone: 0, streamsTotal: 0, eventsRemoved: 0 }),
    subjectKeys: { get: async () => new Map(), forget: async () => false },
    async [Symbol.asyncDispose]() {},
    ...parts,
  };
}

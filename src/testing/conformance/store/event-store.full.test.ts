import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MillraceError } from '../../../foundation/error.ts';
import { openMemory } from '../../../engines/memory/index.ts';
import { eventStoreConformance } from './event-store.ts';
import type { EventReader, EventStore, FeedItem } from '../../../store/event-store.ts';
import type { StoreFixture } from './fixture.ts';
import { storeFaults } from './faults.ts';

const memory: StoreFixture = {
  capabilities: openMemory().store.capabilities,
  open: async (options) => openMemory(options).store,
};

describe('the conformance suite of the event store', () => {
  test('has unique case names, each of which is a sentence', () => {
    const names = eventStoreConformance(memory).map(({ name }) => name);
    assert.ok(names.length >= 350, `only ${names.length} cases`);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^[a-z -]+: .{10,}$/);
  });

  test('skips cases by the name of the missing capability', () => {
    const nothing = {
      multiStreamAppend: false,
      callerTransaction: false,
      durable: false,
      crossProcess: false,
    };
    const cases = eventStoreConformance({ ...memory, capabilities: nothing });
    const skipped = cases.filter(({ skip }) => skip !== undefined);
    assert.deepEqual(
      new Set(skipped.map(({ skip }) => skip)),
      new Set([
        'needs multiStreamAppend',
        'needs callerTransaction',
        'needs durable',
        'needs crossProcess',
        'needs followingAppend',
        'needs rawContent',
      ]),
    );
    assert.ok(cases.length - skipped.length > 250);
    for (const { needs, skip } of skipped) {
      if (needs !== undefined) assert.equal(skip, `needs ${needs}`);
    }
  });

  test('fails if the fixture cannot test a claimed capability', async () => {
    const claimed = { ...memory.capabilities, durable: true };
    const first = eventStoreConformance({ ...memory, capabilities: claimed }).find(
      ({ needs }) => needs === 'durable',
    );
    assert.equal(first?.skip, undefined);
    await assert.rejects(async () => first?.run(), /has no reopen/);
  });

  test('aborts a case when its runner aborts', async () => {
    const stuck: StoreFixture = {
      ...memory,
      open: async (options) => ({
        ...openMemory(options).store,
        append: () => new Promise(() => undefined),
      }),
    };
    const [first] = eventStoreConformance(stuck);
    const stopping = new AbortController();
    const running = first?.run(stopping.signal);
    stopping.abort();
    await assert.rejects(async () => running, { code: 'ABORTED' });
  });

  for (const [fault, { topic, inject }] of Object.entries(storeFaults)) {
    test(`catches a store that ${fault}`, async () => {
      const faulty: StoreFixture = {
        ...memory,
        open: async (options) => inject(openMemory(options).store),
      };
      const cases = eventStoreConformance(faulty).filter(
        ({ name, skip }) => name.startsWith(`${topic}: `) && skip === undefined,
      );
      assert.ok(cases.length > 0, `no topic ${topic}`);
      const outcomes: string[] = [];
      for (const { name, run } of cases) {
        try {
          await run();
        } catch {
          outcomes.push(name);
          break;
        }
      }
      assert.equal(outcomes.length, 1, `all ${cases.length} cases of '${topic}' passed`);
    });
  }
});

/** The cases for durable and shared engines, run on connections to one in-memory store. */
describe('connections to one store in memory', () => {
  const cases = eventStoreConformance({
    capabilities: { ...memory.capabilities, durable: true, crossProcess: true },
    open: async (options) => connect(openMemory(options).store),
    async reopen(store) {
      await store[Symbol.asyncDispose]();
      return connect(baseOf(store));
    },
    second: async (store) => connect(baseOf(store)),
  });
  for (const { name, needs, run } of cases) {
    const wanted = needs === 'durable' || needs === 'crossProcess' || name.startsWith('closing:');
    if (wanted) test(name, ({ signal }) => run(signal));
  }
});

const bases = new WeakMap<EventStore, EventStore>();

function baseOf(store: EventStore): EventStore {
  const base = bases.get(store);
  assert.ok(base !== undefined);
  return base;
}

/** A connection that can be closed while its store stays open. */
function connect(base: EventStore): EventStore {
  const closing = new AbortController();
  const closed = (): MillraceError =>
    new MillraceError('STORE_CLOSED', 'the connection was closed');
  const open = (): EventStore => {
    if (closing.signal.aborted) throw closed();
    return base;
  };
  async function* live(
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal) => AsyncIterable<FeedItem>,
  ): AsyncGenerator<FeedItem, void, undefined> {
    open();
    yield* start(AbortSignal.any([closing.signal, ...(signal === undefined ? [] : [signal])]));
    if (signal?.aborted !== true) throw closed();
  }
  const connection: EventStore = {
    capabilities: { ...base.capabilities, durable: true, crossProcess: true },
    append: async (...args) => open().append(...args),
    appendMany: async (...args) => open().appendMany(...args),
    readStream: (stream, options) => checked(() => open().readStream(stream, options)),
    readAll: (options) => checked(() => open().readAll(options)),
    findEvent: async (...args) => open().findEvent(...args),
    areVisible: async (...args) => open().areVisible(...args),
    subscribe: (options = {}) =>
      live(options.signal, (signal) => base.subscribe({ ...options, signal })),
    subscribeToStream: (stream, options = {}) =>
      live(options.signal, (signal) => base.subscribeToStream(stream, { ...options, signal })),
    streamInfo: async (...args) => open().streamInfo(...args),
    setStreamMetadata: async (...args) => open().setStreamMetadata(...args),
    deleteStream: async (...args) => open().deleteStream(...args),
    tombstoneStream: async (...args) => open().tombstoneStream(...args),
    head: async () => open().head(),
    positionBefore: async (...args) => open().positionBefore(...args),
    scavenge: async (...args) => open().scavenge(...args),
    forget: async (...args) => open().forget(...args),
    personalData: base.personalData,
    async [Symbol.asyncDispose]() {
      closing.abort();
    },
  };
  bases.set(connection, base);
  return connection;
}

/** Checks before each page whether the connection is still open. */
function checked<Reader extends EventReader>(reader: () => Reader): Reader {
  async function* pages() {
    for await (const page of reader().pages()) {
      yield page;
      reader();
    }
  }
  return {
    ...reader(),
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page;
    },
    async toArray() {
      return (await Array.fromAsync(pages())).flat();
    },
  };
}

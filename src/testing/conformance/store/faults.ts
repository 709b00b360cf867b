// Known faults of event stores, injected into a correct store: the suite must detect each of them.

import { MillraceError } from '../../../foundation/error.ts';
import { isForgotten, subjectOf } from '../../../store/erasure.ts';
import type { EventReader, EventStore, FeedItem } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';

export interface StoreFault {
  /** The topic whose cases must fail. */
  readonly topic: string;
  readonly inject: (store: EventStore) => EventStore;
}

type Methods = Partial<EventStore>;

const fault = (topic: string, change: (store: EventStore) => Methods): StoreFault => ({
  topic,
  inject: (store) => ({ ...store, ...change(store) }),
});

/** Each key completes the sentence "catches a store that …". */
export const storeFaults: Readonly<Record<string, StoreFault>> = {
  'appends although the stream must not exist': fault('append', (store) => ({
    append: (stream, events, options = {}) =>
      store.append(stream, events, options.expected === 'none' ? {} : options),
  })),

  'appends although the stream must exist': fault('append', (store) => ({
    append: (stream, events, options = {}) =>
      store.append(stream, events, options.expected === 'exists' ? {} : options),
  })),

  'reports the expected revision as the actual one': fault('append', (store) => ({
    append: (...args) => store.append(...args).catch(blaming(args[2]?.expected)),
  })),

  'rejects parallel appends without a check': fault('concurrent append', (store) => {
    const busy = new Set<string>();
    return {
      async append(stream, events, options) {
        if (busy.has(stream))
          throw new MillraceError('VERSION_CONFLICT', 'another writer was faster');
        busy.add(stream);
        try {
          await new Promise(setImmediate);
          return await store.append(stream, events, options);
        } finally {
          busy.delete(stream);
        }
      },
    };
  }),

  'checks first and writes later': fault('concurrent append', (store) => ({
    async append(stream, events, options = {}) {
      const { expected = 'any' } = options;
      const revision = (await store.streamInfo(stream))?.revision ?? -1;
      const exact = expected === 'none' ? -1 : expected;
      await new Promise(setImmediate);
      return store.append(stream, events, exact === revision ? {} : options);
    },
  })),

  'reports a duplicate as a conflict': fault('idempotent append', (store) => ({
    async append(...args) {
      const result = await store.append(...args);
      if (result.isDuplicate) throw new MillraceError('VERSION_CONFLICT', 'it is there');
      return result;
    },
  })),

  'returns the newest revision for a duplicate': fault('idempotent append', (store) => ({
    async append(stream, ...args) {
      const result = await store.append(stream, ...args);
      const revision = (await store.streamInfo(stream))?.revision ?? 0;
      return result.isDuplicate ? { ...result, revision } : result;
    },
  })),

  'appends to several streams one after the other': fault('multi-stream append', (store) => ({
    async appendMany(appends, options) {
      const results = [];
      for (const { stream, events, expected = 'any' } of appends) {
        results.push(await store.append(stream, events, { ...options, expected }));
      }
      return results;
    },
  })),

  'ignores the case of names': fault('append', (store) => ({
    append: (stream, ...args) => store.append(stream.toLowerCase(), ...args),
    readStream: (stream, options) => store.readStream(stream.toLowerCase(), options),
  })),

  'sorts the keys of payloads': fault('round trip', (store) => ({
    readStream: (...args) => mapped(store.readStream(...args), sortKeys),
  })),

  'stamps events when they are read': fault('round trip', (store) => {
    let reads = 0;
    return {
      readStream: (...args) =>
        mapped(store.readStream(...args), (event) => {
          reads += 1;
          return { ...event, recordedAt: new Date(reads).toISOString() };
        }),
    };
  }),

  'applies a limit per page': fault('read a stream', (store) => ({
    readStream: (stream, options = {}) =>
      store.readStream(
        stream,
        options.limit !== undefined && options.pageSize !== undefined
          ? { ...options, limit: Math.ceil(options.limit / options.pageSize) * options.pageSize }
          : options,
      ),
  })),

  'starts a read after the requested revision': fault('read a stream', (store) => ({
    readStream: (stream, options = {}) =>
      store.readStream(
        stream,
        options.from === undefined ? options : { ...options, from: options.from + 1 },
      ),
  })),

  'skips an event now and then': fault('read all', (store) => ({
    readAll: (...args) =>
      filtered(store.readAll(...args), (event) => Number.parseInt(event.position, 16) % 20 !== 0),
  })),

  'mixes the tenants': fault('filter', (store) => ({
    readAll: ({ filter: { tenant: _tenant, ...filter } = {}, ...options } = {}) =>
      store.readAll({ ...options, filter }),
  })),

  'treats a category as a prefix': fault('filter', (store) => ({
    readAll: ({ filter: { category, ...filter } = {}, ...options } = {}) =>
      category === undefined
        ? store.readAll({ ...options, filter })
        : filtered(store.readAll({ ...options, filter }), ({ stream }) =>
            stream.startsWith(category),
          ),
  })),

  'shows system events to filtered reads': fault('filter', (store) => ({
    readAll: (options = {}) =>
      store.readAll(
        options.filter === undefined
          ? options
          : { ...options, filter: { ...options.filter, system: true } },
      ),
  })),

  'delivers the event at a checkpoint again': fault('subscribe', (store) => ({
    subscribe: (options = {}) =>
      store.subscribe(
        options.after === undefined || options.after === 'end' || !/[1-9a-f]$/.test(options.after)
          ? options
          : { ...options, after: `${options.after.slice(0, -1)}0` as typeof options.after },
      ),
  })),

  'reports positions that it has not reached': fault('subscribe', (store) => ({
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        yield { ...item, position: await store.head() };
      }
    },
  })),

  'reports repeatedly that it has caught up': fault('subscribe', (store) => ({
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        yield item;
        if (item.kind === 'events') yield { kind: 'caughtUp', position: item.position };
      }
    },
  })),

  'reads a whole store ahead of a slow consumer': fault('subscribe', (store) => ({
    async *subscribe(options) {
      const ahead: FeedItem[] = [];
      for await (const item of store.subscribe(options)) {
        ahead.push(item);
        if (item.kind === 'caughtUp') break;
      }
      yield* ahead;
      yield* store.subscribe({ ...options, after: ahead.at(-1)?.position ?? 'end' });
    },
  })),

  'throws when a subscription is aborted': fault('subscribe', (store) => ({
    async *subscribe(options) {
      yield* store.subscribe(options);
      throw new MillraceError('ABORTED', 'the wait was cancelled');
    },
  })),

  'skips events that commit late': fault('subscribe concurrently', (store) => ({
    async *subscribe(options) {
      let items = 0;
      for await (const item of store.subscribe(options)) {
        items += 1;
        if (item.kind !== 'events' || items % 7 !== 0) yield item;
        else yield { ...item, events: item.events.slice(1) };
      }
    },
  })),

  'returns a stream out of order': fault('subscribe concurrently', (store) => ({
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        yield item.kind === 'events' ? { ...item, events: item.events.toReversed() } : item;
      }
    },
  })),

  'shows events that metadata hides': fault('stream metadata', (store) => ({
    setStreamMetadata: (stream, { truncateBefore: _none, ...metadata }) =>
      store.setStreamMetadata(stream, metadata),
  })),

  'deletes with any expected revision': fault('deletion', (store) => ({
    deleteStream: (stream) => store.deleteStream(stream),
  })),

  'restores a tombstoned stream': fault('deletion', (store) => ({
    tombstoneStream: (stream, options) => store.deleteStream(stream, options),
  })),

  'scavenges visible events': fault('scavenge', (store) => {
    const streams = new Set<string>();
    return {
      async append(stream, ...args) {
        streams.add(stream);
        return store.append(stream, ...args);
      },
      async scavenge(options) {
        for (const stream of streams) {
          const info = await store.streamInfo(stream);
          if (info?.deleted === 'no') await store.setStreamMetadata(stream, { maxCount: 1 });
        }
        return store.scavenge(options);
      },
    };
  }),

  'reveals forgotten data to one kind of read': fault('erasure', (store) => {
    const payloads = new Map<string, unknown>();
    return {
      async append(stream, events, options) {
        for (const { eventId, payload } of events) payloads.set(eventId, payload);
        return store.append(stream, events, options);
      },
      readAll: (...args) =>
        mapped(store.readAll(...args), (event) =>
          isForgotten(event.payload) ? { ...event, payload: payloads.get(event.eventId) } : event,
        ),
    };
  }),

  'forgets all people at once': fault('erasure', (store) => {
    const known = new Set<string>();
    return {
      async append(stream, events, options) {
        for (const event of events) known.add(subjectOf(event) ?? 'nobody');
        return store.append(stream, events, options);
      },
      async forget(subject) {
        const result = await store.forget(subject);
        for (const each of known) await store.forget(each);
        return result;
      },
    };
  }),

  'loses the last event of a longer history': fault('model', (store) => ({
    readStream: (...args) => filtered(store.readStream(...args), ({ revision }) => revision !== 9),
  })),

  'keeps working after closing': fault('closing', () => ({
    [Symbol.asyncDispose]: async () => undefined,
  })),
};

function blaming(expected: unknown): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof MillraceError)) throw error;
    const details = { ...error.details, actual: expected };
    throw new MillraceError(error.code, error.message, { details });
  };
}

function mapped<Reader extends EventReader>(
  reader: Reader,
  change: (event: RecordedEvent) => RecordedEvent,
): Reader {
  return paged(reader, (page) => page.map(change));
}

function filtered<Reader extends EventReader>(
  reader: Reader,
  keep: (event: RecordedEvent) => boolean,
): Reader {
  return paged(reader, (page) => page.filter(keep));
}

function paged<Reader extends EventReader>(
  reader: Reader,
  change: (page: readonly RecordedEvent[]) => readonly RecordedEvent[],
): Reader {
  async function* pages() {
    for await (const page of reader.pages()) yield change(page);
  }
  return {
    ...reader,
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page;
    },
    async toArray() {
      const all: RecordedEvent[] = [];
      for await (const page of pages()) all.push(...page);
      return all;
    },
  };
}

function sortKeys(event: RecordedEvent): RecordedEvent {
  const { payload } = event;
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return event;
  const entries = Object.entries(payload).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { ...event, payload: Object.fromEntries(entries) };
}

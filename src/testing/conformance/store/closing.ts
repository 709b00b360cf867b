// A closed store rejects every call.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { follow, newEvent, newEvents, newStream, type StoreCases } from './fixture.ts';

const stream = newStream();

const uses: Readonly<Record<string, (store: EventStore, signal: AbortSignal) => Promise<unknown>>> =
  {
    append: (store) => store.append(stream, [newEvent()]),
    appendMany: (store) => store.appendMany([{ stream, events: [newEvent()] }]),
    readStream: (store) => store.readStream(stream).toArray(),
    readAll: (store) => store.readAll().toArray(),
    findEvent: (store) => store.findEvent(stream, 'e-1'),
    areVisible: (store) => store.areVisible([]),
    subscribe: (store, signal) => follow(store.subscribe({ signal })).next(),
    subscribeToStream: (store, signal) =>
      follow(store.subscribeToStream(stream, { signal })).next(),
    streamInfo: (store) => store.streamInfo(stream),
    setStreamMetadata: (store) => store.setStreamMetadata(stream, { maxCount: 1 }),
    deleteStream: (store) => store.deleteStream(stream),
    tombstoneStream: (store) => store.tombstoneStream(stream),
    head: (store) => store.head(),
    scavenge: (store) => store.scavenge(),
    forget: (store) => store.forget('person-1'),
  };

export const closingCases: StoreCases = {
  'rejects every operation after closing': async ({ open, signal }) => {
    const store = await open();
    await store.append(stream, newEvents(3));
    await store[Symbol.asyncDispose]();
    for (const [operation, use] of Object.entries(uses)) {
      const error = await rejectsWith(() => use(store, signal), 'STORE_CLOSED');
      assert.equal(error.retryable, false, operation);
    }
  },

  'closing twice, also concurrently, is harmless': async ({ open }) => {
    const store = await open();
    await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]);
    await store[Symbol.asyncDispose]();
  },

  'rejects the next page of an active reader': async ({ open }) => {
    const store = await open();
    await store.append(stream, newEvents(6));
    const seen: number[] = [];
    await rejectsWith(async () => {
      for await (const page of store.readStream(stream, { pageSize: 2 }).pages()) {
        seen.push(page.length);
        await store[Symbol.asyncDispose]();
      }
    }, 'STORE_CLOSED');
    assert.deepEqual(seen, [2]);
  },

  'an abandoned subscription does not prevent closing': async ({ open, signal }) => {
    const store = await open();
    await store.append(stream, newEvents(6));
    await follow(store.subscribe({ signal, pageSize: 2 })).next();
    for await (const { kind } of store.subscribe({ signal })) if (kind === 'caughtUp') break;
    await store[Symbol.asyncDispose]();
  },

  'appends in flight are either rejected or stored': async ({ open }) => {
    const store = await open();
    const appends = Array.from({ length: 20 }, () => store.append(newStream(), [newEvent()]));
    const settled = Promise.allSettled(appends);
    await store[Symbol.asyncDispose]();
    for (const outcome of await settled) {
      if (outcome.status === 'fulfilled') continue;
      await rejectsWith(() => Promise.reject(outcome.reason as Error), 'STORE_CLOSED');
    }
  },

  'the store has the capabilities of its fixture': async ({ store, capabilities }) => {
    assert.deepEqual(store.capabilities, capabilities);
  },
};

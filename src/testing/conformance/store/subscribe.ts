// Live reading of all streams: catch up, then follow; every reported position is safe to resume from.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { EventStore, FeedItem } from '../../../store/event-store.ts';
import { subjectHeader, isForgotten } from '../../../store/erasure.ts';
import { storeLimits } from '../../../store/prepare-append.ts';
import {
  assertAscending,
  assertDense,
  follow,
  idsOf,
  last,
  newEvent,
  newEvents,
  newStream,
  turn,
  unique,
  type StoreCases,
} from './fixture.ts';

export const subscribeCases: StoreCases = {
  'catches up with existing events, then delivers new ones': async ({ open, signal }) => {
    const store = await open();
    const events = newEvents(6);
    const stream = newStream();
    await store.append(stream, events.slice(0, 3));
    await using follower = follow(store.subscribe({ signal }));
    await follower.caughtUp();
    assert.deepEqual(idsOf(follower.events), idsOf(events.slice(0, 3)));
    await store.append(stream, events.slice(3, 4));
    await store.append(newStream(), events.slice(4));
    assert.deepEqual(idsOf(await follower.count(6)), idsOf(events));
  },

  'catches up with an empty store at once': async ({ open, signal }) => {
    const store = await open();
    await using follower = follow(store.subscribe({ signal }));
    assert.deepEqual(kinds(await follower.caughtUp()), ['caughtUp']);
    const event = newEvent();
    await store.append(newStream(), [event]);
    assert.deepEqual(idsOf(await follower.count(1)), [event.eventId]);
  },

  'reports once that it has caught up, as long as it keeps up': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(10));
    await using follower = follow(store.subscribe({ signal, pageSize: 4 }));
    const items = await follower.caughtUp();
    for (let count = 11; count < 20; count += 1) {
      await store.append(newStream(), [newEvent()]);
      items.push(...(await follower.until(({ kind }) => kind === 'events')));
      assert.equal(follower.events.length, count);
    }
    assert.equal(kinds(items).filter((kind) => kind === 'caughtUp').length, 1);
    assert.ok(!kinds(items).includes('fellBehind'));
  },

  'delivers every event once and in order, with any page size': async ({ open, signal }) => {
    const store = await open();
    for (let round = 0; round < 9; round += 1) await store.append(newStream(), newEvents(3));
    const all = await store.readAll({ filter: {} }).toArray();
    for (const pageSize of [1, 2, 9, 26, 27, 28, 500]) {
      await using follower = follow(store.subscribe({ signal, pageSize }));
      const items = await follower.caughtUp();
      assert.deepEqual(follower.events, all);
      for (const item of items) {
        assert.ok(item.kind !== 'events' || item.events.length <= pageSize);
      }
    }
  },

  'from a position: starts after its event': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(5));
    const all = await store.readAll({ filter: {} }).toArray();
    for (const [index, { position: after }] of all.entries()) {
      await using follower = follow(store.subscribe({ after, signal }));
      await follower.caughtUp();
      assert.deepEqual(idsOf(follower.events), idsOf(all.slice(index + 1)));
    }
  },

  'from the end: delivers new events only': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(5));
    await using follower = follow(store.subscribe({ after: 'end', signal }));
    assert.deepEqual(kinds(await follower.caughtUp()), ['caughtUp']);
    const events = newEvents(2);
    for (const event of events) await store.append(newStream(), [event]);
    assert.deepEqual(idsOf(await follower.count(2)), idsOf(events));
  },

  'from the head: delivers new events only, like from the end': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(5));
    await using follower = follow(store.subscribe({ after: await store.head(), signal }));
    const event = newEvent();
    await follower.caughtUp();
    await store.append(newStream(), [event]);
    assert.deepEqual(idsOf(await follower.count(1)), [event.eventId]);
  },

  'a filter applies while catching up and while following': async ({ store, signal }) => {
    const category = unique('c');
    const filter = { category, typePrefixes: ['account.o'] };
    const wanted = newEvents(4, { type: 'account.opened.v1' });
    const append = (events: typeof wanted) => store.append(newStream(category), events);
    await append([newEvent(), ...wanted.slice(0, 1), newEvent()]);
    await using follower = follow(store.subscribe({ filter, signal }));
    await follower.caughtUp();
    await append([newEvent()]);
    await append(wanted.slice(1, 3));
    await store.append(newStream(), newEvents(1, { type: 'account.opened.v1' }));
    await append([newEvent(), ...wanted.slice(3)]);
    assert.deepEqual(idsOf(await follower.count(4)), idsOf(wanted));
  },

  'delivers system events only when requested': async ({ open, signal }) => {
    const store = await open();
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    await store.setStreamMetadata(stream, { custom: { a: 1 } });
    await using plain = follow(store.subscribe({ signal }));
    await using system = follow(
      store.subscribe({ signal, filter: { system: true, streamPattern: stream } }),
    );
    await plain.caughtUp();
    await system.caughtUp();
    assert.deepEqual(
      plain.events.map(({ type }) => type),
      ['account.credited.v1'],
    );
    assert.deepEqual(
      system.events.map(({ type }) => type),
      ['account.credited.v1', '$metadata'],
    );
  },

  'reports checkpoints as often as requested': async ({ open, signal }) => {
    const store = await open();
    const filter = { types: ['account.opened.v1'] };
    await using follower = follow(store.subscribe({ filter, signal, checkpointEvery: 10 }));
    await follower.caughtUp();
    const start = await store.head();
    await store.append(newStream(), newEvents(25));
    const items = await follower.until(({ kind }) => kind === 'checkpoint');
    assertAscending([start, last(items).position]);
  },

  'a filter that matches nothing still reports its progress': async ({ open, signal }) => {
    const store = await open();
    const filter = { types: ['account.opened.v1'] };
    const appendOthers = async (): Promise<void> => {
      for (let left = storeLimits.checkpointEvery; left > 0; left -= 1_000) {
        await store.append(newStream(), newEvents(1_000));
      }
    };
    const start = await store.head();
    await appendOthers();
    await using follower = follow(store.subscribe({ filter, signal }));
    const items = await follower.caughtUp();
    const checkpoint = items.find(({ kind }) => kind === 'checkpoint');
    assert.ok(checkpoint !== undefined && checkpoint.position > start);
    const [, more] = await Promise.all([
      appendOthers(),
      follower.until(({ kind }) => kind === 'checkpoint'),
    ]);
    assertAscending([checkpoint.position, last(more).position]);
    const event = newEvent({ type: 'account.opened.v1' });
    await store.append(newStream(), [event]);
    await using resumed = follow(store.subscribe({ filter, signal, after: last(more).position }));
    assert.deepEqual(idsOf(await resumed.count(1)), [event.eventId]);
    assert.deepEqual(idsOf(await follower.count(1)), [event.eventId]);
  },

  'reports falling behind at a burst of more than a page, and catching up again': async ({
    open,
    signal,
  }) => {
    const store = await open();
    await using follower = follow(store.subscribe({ signal, pageSize: 5 }));
    await follower.caughtUp();
    await store.append(newStream(), newEvents(23));
    const items = await follower.caughtUp();
    assert.equal(items[0]?.kind, 'fellBehind');
    assert.equal(kinds(items).filter((kind) => kind === 'fellBehind').length, 1);
    assert.equal(follower.events.length, 23);
    assertDense(follower.events);
  },

  'a subscription can resume from the position of every item': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(12));
    await using follower = follow(store.subscribe({ signal, pageSize: 5 }));
    const delivered: { readonly item: FeedItem; readonly given: number }[] = [];
    const pull = async (): Promise<FeedItem> => {
      const item = await follower.next();
      delivered.push({ item, given: follower.events.length });
      return item;
    };
    while ((await pull()).kind !== 'caughtUp');
    await store.append(newStream(), newEvents(13));
    while ((await pull()).kind !== 'caughtUp');
    assert.ok(delivered.some(({ item }) => item.kind === 'fellBehind'));
    const all = await store.readAll({ filter: {} }).toArray();
    for (const { item, given } of delivered) {
      const rest = await store.readAll({ after: item.position, filter: {} }).toArray();
      assert.deepEqual(idsOf(rest), idsOf(all.slice(given)), `after ${item.kind}`);
    }
  },

  'positions never decrease': async ({ open, signal }) => {
    const store = await open();
    await store.append(newStream(), newEvents(12));
    await using follower = follow(store.subscribe({ signal, pageSize: 5 }));
    const items = await follower.caughtUp();
    await store.append(newStream(), newEvents(12));
    items.push(...(await follower.caughtUp()));
    const positions = items.map(({ position }) => position);
    assert.deepEqual(positions, positions.toSorted());
  },

  'does not miss an append between the last item and the next wait': async ({ open, signal }) => {
    const store = await open();
    await using follower = follow(store.subscribe({ signal }));
    await follower.caughtUp();
    for (let count = 1; count <= 50; count += 1) {
      const next = follower.count(count);
      if (count % 2 === 0) await Promise.resolve();
      if (count % 3 === 0) await turn();
      const [events] = await Promise.all([next, store.append(newStream(), [newEvent()])]);
      assert.equal(events.length, count);
    }
  },

  'several subscriptions get all events, each at a different pace': async ({ open, signal }) => {
    const store = await open();
    const stream = newStream();
    const followers = Array.from({ length: 20 }, (_, index) =>
      follow(store.subscribe({ signal, pageSize: 1 + index })),
    );
    await Promise.all(followers.map((follower) => follower.caughtUp()));
    await store.append(stream, newEvents(15));
    for (const follower of followers) {
      assert.equal((await follower.count(15)).length, 15);
      assertDense(follower.events);
      await follower[Symbol.asyncDispose]();
    }
  },

  'leaving the loop ends the subscription without affecting the store': async ({
    open,
    signal,
  }) => {
    const store = await open();
    await store.append(newStream(), newEvents(10));
    for (const leaveAt of ['events', 'caughtUp'] as const) {
      for await (const item of store.subscribe({ signal, pageSize: 3 })) {
        if (item.kind === leaveAt) break;
      }
    }
    await assert.rejects(async () => {
      for await (const item of store.subscribe({ signal })) await fail(item);
    }, /the handler failed/);
    await store.append(newStream(), newEvents(1));
    assert.equal((await store.readAll({ filter: {} }).toArray()).length, 11);
  },

  'an aborted signal ends a waiting subscription without an error': async ({ open }) => {
    const store = await open();
    const leaving = new AbortController();
    const follower = follow(store.subscribe({ signal: leaving.signal }));
    await follower.caughtUp();
    const ended = follower.ended();
    await turn();
    leaving.abort();
    await ended;
  },

  'an aborted signal ends a catching-up subscription at the next page': async ({ open }) => {
    const store = await open();
    await store.append(newStream(), newEvents(100));
    const leaving = new AbortController();
    const follower = follow(store.subscribe({ signal: leaving.signal, pageSize: 10 }));
    await follower.count(20);
    leaving.abort(new Error('enough'));
    await follower.ended();
    assert.equal(follower.events.length, 20);
  },

  'a signal aborted beforehand ends the subscription before its first event': async ({ open }) => {
    const store = await open();
    await store.append(newStream(), newEvents(10));
    for (const after of [undefined, 'end'] as const) {
      const options = after === undefined ? {} : { after };
      const follower = follow(store.subscribe({ ...options, signal: AbortSignal.abort() }));
      await follower.ended();
      assert.deepEqual(follower.events, []);
    }
  },

  'reads at most a few pages ahead of a slow consumer': async ({ open, signal }) => {
    const store = await open();
    const subject = unique('person-');
    const pageSize = 10;
    const headers = { [subjectHeader]: subject };
    await store.append(newStream(), newEvents(500, { headers }));
    await using follower = follow(store.subscribe({ signal, pageSize }));
    await follower.count(pageSize);
    // Events that can still be read after closing were read ahead.
    await settle(store);
    await store.forget(subject);
    await follower.caughtUp();
    const readable = follower.events.filter(({ payload }) => !isForgotten(payload));
    assert.equal(follower.events.length, 500);
    assert.ok(readable.length <= 4 * pageSize, `${readable.length} events were fetched ahead`);
  },

  'a live reader gets each event of a stream that keeps only the last one': async ({
    store,
    signal,
  }) => {
    const category = unique('live');
    const stream = newStream(category);
    await store.append(stream, [newEvent()]);
    await store.setStreamMetadata(stream, { maxCount: 1 });
    await using follower = follow(store.subscribe({ filter: { category }, signal }));
    await follower.caughtUp();
    const events = newEvents(40);
    for (let at = 0; at < 20; at += 5) await store.append(stream, events.slice(at, at + 5));
    for (const event of events.slice(20)) await store.append(stream, [event]);
    const end = newEvent();
    await store.append(stream, [end]);
    assert.deepEqual(idsOf((await follower.before(end.eventId)).slice(1)), idsOf(events));
  },

  'closing the store ends a waiting subscription with an error': async ({ open, signal }) => {
    const store = await open();
    const follower = follow(store.subscribe({ signal }));
    await follower.caughtUp();
    const ended = rejectsWith(() => follower.next(), 'STORE_CLOSED');
    await turn();
    await store[Symbol.asyncDispose]();
    await ended;
  },
};

function kinds(items: readonly FeedItem[]): string[] {
  return items.map(({ kind }) => kind);
}

async function fail(item: FeedItem): Promise<void> {
  throw new Error(`the handler failed on ${item.kind}`);
}

/** Waits long enough for several reads ahead. */
async function settle(store: EventStore): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    await store.readAll({ limit: 1 }).toArray();
    await turn();
  }
}

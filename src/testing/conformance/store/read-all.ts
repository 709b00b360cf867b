// Reading all streams in the order of the store, after any position, without gaps and duplicates.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { startPosition } from '../../../store/position.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import {
  assertAscending,
  assertDense,
  follow,
  idsOf,
  last,
  needs,
  newEvent,
  newEvents,
  newStream,
  turn,
  unique,
  type StoreCases,
} from './fixture.ts';

/** Reads without system events: some engines contain them from the start. */
const filter = {};

export const readAllCases: StoreCases = {
  'an empty store has no events, in either direction': async ({ open }) => {
    const store = await open();
    for (const direction of ['forwards', 'backwards'] as const) {
      assert.deepEqual(await store.readAll({ direction, filter }).toArray(), []);
    }
  },

  'forwards: returns all events of all streams, in the order of their appends': async ({
    open,
  }) => {
    const store = await open();
    const appended = await fill(store);
    const all = await store.readAll({ filter }).toArray();
    assert.deepEqual(idsOf(all), appended);
    assertAscending(all.map(({ position }) => position));
    assertDense(all);
  },

  'backwards: returns the same events in reverse order': async ({ open }) => {
    const store = await open();
    const appended = await fill(store);
    const all = await store.readAll({ direction: 'backwards', filter }).toArray();
    assert.deepEqual(idsOf(all), appended.toReversed());
  },

  'forwards: starts after the given position, without its event': async ({ open }) => {
    const store = await open();
    await fill(store);
    const all = await store.readAll({ filter }).toArray();
    for (const [index, { position }] of all.entries()) {
      const rest = await store.readAll({ after: position, filter }).toArray();
      assert.deepEqual(idsOf(rest), idsOf(all.slice(index + 1)));
    }
  },

  'backwards: starts before the given position, without its event': async ({ open }) => {
    const store = await open();
    await fill(store);
    const all = await store.readAll({ filter }).toArray();
    for (const [index, { position: after }] of all.entries()) {
      const rest = await store.readAll({ direction: 'backwards', after, filter }).toArray();
      assert.deepEqual(idsOf(rest), idsOf(all.slice(0, index).toReversed()));
    }
  },

  'the start position precedes all events': async ({ open }) => {
    const store = await open();
    const appended = await fill(store);
    const forwards = await store.readAll({ after: startPosition, filter }).toArray();
    assert.deepEqual(idsOf(forwards), appended);
    const direction = 'backwards';
    assert.deepEqual(
      await store.readAll({ direction, after: startPosition, filter }).toArray(),
      [],
    );
  },

  'the head follows all events, and later events follow the head': async ({ open }) => {
    const store = await open();
    const before = await store.head();
    const appended = await fill(store);
    const head = await store.head();
    assert.deepEqual(idsOf(await store.readAll({ after: before, filter }).toArray()), appended);
    assert.deepEqual(await store.readAll({ after: head, filter }).toArray(), []);
    const event = newEvent();
    const { position } = await store.append(newStream(), [event]);
    assert.ok(head < position);
    assert.ok((await store.head()) >= position);
    assert.deepEqual(idsOf(await store.readAll({ after: head, filter }).toArray()), [
      event.eventId,
    ]);
  },

  'every page size returns the same events, in both directions': async ({ open }) => {
    const store = await open();
    const appended = await fill(store);
    for (const pageSize of [1, 2, 3, 7, appended.length - 1, appended.length, 1_000]) {
      const forwards = await store.readAll({ pageSize, filter }).toArray();
      assert.deepEqual(idsOf(forwards), appended);
      const backwards = await store.readAll({ pageSize, direction: 'backwards', filter }).toArray();
      assert.deepEqual(idsOf(backwards), appended.toReversed());
    }
  },

  'the limit counts over all pages': async ({ open }) => {
    const store = await open();
    const appended = await fill(store);
    for (const [limit, pageSize] of [
      [1, 10],
      [7, 3],
      [6, 3],
      [10_000, 4],
    ] as const) {
      const events = await store.readAll({ limit, pageSize, filter }).toArray();
      assert.deepEqual(idsOf(events), appended.slice(0, limit));
      const newest = await store
        .readAll({ limit, pageSize, direction: 'backwards', filter })
        .toArray();
      assert.deepEqual(idsOf(newest), appended.toReversed().slice(0, limit));
    }
    assert.deepEqual(await store.readAll({ limit: 0, filter }).toArray(), []);
  },

  'the limit counts matching events, not examined ones': async ({ store }) => {
    const category = unique('c');
    const stream = newStream(category);
    const wanted = newEvents(6, { type: 'account.opened.v1' });
    for (const event of wanted) await store.append(stream, [newEvent(), event, newEvent()]);
    const types = ['account.opened.v1'];
    const events = await store
      .readAll({ filter: { category, types }, limit: 4, pageSize: 3 })
      .toArray();
    assert.deepEqual(idsOf(events), idsOf(wanted.slice(0, 4)));
  },

  'reading page by page from the last position returns every event once': async ({ open }) => {
    const store = await open();
    const appended = await fill(store);
    const seen: string[] = [];
    let after = startPosition;
    for (;;) {
      const page = await store.readAll({ after, limit: 4, filter }).toArray();
      if (page.length === 0) break;
      seen.push(...idsOf(page));
      after = last(page).position;
    }
    assert.deepEqual(seen, appended);
  },

  'a polling reader misses nothing while sixteen writers append': async ({ open }) => {
    const store = await open();
    const shared = newStream();
    let writing = true;
    const writers = Promise.all(
      Array.from({ length: 16 }, async (_, writer) => {
        const stream = newStream();
        for (let round = 0; round < 12; round += 1) {
          await store.append(round % 3 === 0 ? shared : stream, newEvents(1 + (writer % 3)));
        }
      }),
    ).finally(() => (writing = false));
    const seen: RecordedEvent[] = [];
    for (let drained = false; !drained;) {
      drained = !writing;
      const after = seen.at(-1)?.position ?? startPosition;
      seen.push(...(await store.readAll({ after, pageSize: 7, filter }).toArray()));
      await turn();
    }
    await writers;
    const all = await store.readAll({ filter }).toArray();
    assert.equal(all.length, 372);
    assert.deepEqual(idsOf(seen), idsOf(all));
    assertDense(seen);
  },

  'appends during a read neither repeat nor skip events': async ({ open }) => {
    const store = await open();
    await fill(store);
    const seen: RecordedEvent[] = [];
    let more = 10;
    for await (const event of store.readAll({ pageSize: 3, filter })) {
      seen.push(event);
      if (more > 0) await store.append(newStream(), [newEvent()]);
      more -= 1;
    }
    const all = await store.readAll({ filter, limit: seen.length }).toArray();
    assert.deepEqual(idsOf(seen), idsOf(all));
  },

  'a long read does not block other operations': async ({ open, signal }) => {
    const store = await open();
    await fill(store);
    const readers = [
      () => store.readAll({ pageSize: 2, filter }).toArray(),
      () => store.readAll({ pageSize: 2, filter, direction: 'backwards' }).toArray(),
      () => follow(store.subscribe({ pageSize: 2, signal })).caughtUp(),
    ];
    for (const read of readers) {
      let turned = false;
      setImmediate(() => (turned = true));
      await read();
      assert.ok(turned, 'the read blocked timers and sockets');
    }
  },

  'two stores are independent': needs('ownServer', async ({ open }) => {
    const [one, other] = [await open(), await open()];
    const stream = newStream();
    await one.append(stream, [newEvent()]);
    assert.deepEqual(await other.readAll({ filter }).toArray(), []);
    assert.equal(await other.streamInfo(stream), undefined);
  }),

  'rejects a read whose signal is aborted': async ({ store }) => {
    await store.append(newStream(), [newEvent()]);
    const signal = AbortSignal.abort();
    await rejectsWith(async () => store.readAll({ signal, filter }).toArray(), 'ABORTED');
  },

  'an abort during a read stops it after the current page': async ({ open }) => {
    const store = await open();
    await fill(store);
    const leaving = new AbortController();
    let pages = 0;
    await rejectsWith(async () => {
      for await (const page of store
        .readAll({ pageSize: 2, signal: leaving.signal, filter })
        .pages()) {
        pages += page.length > 0 ? 1 : 0;
        if (pages === 3) leaving.abort();
      }
    }, 'ABORTED');
    assert.equal(pages, 3);
  },
};

/** Appends twenty-one events to ten streams and returns their ids in order. */
async function fill(store: EventStore): Promise<string[]> {
  const ids: string[] = [];
  const streams = Array.from({ length: 10 }, (_, index) =>
    newStream(index % 2 === 0 ? 'banking.account.v1' : 'crm.contact.v2'),
  );
  for (let index = 0; index < 11; index += 1) {
    const events = newEvents(1 + (index % 3));
    const stream = streams[index % 10] ?? '';
    await store.append(stream, events);
    ids.push(...idsOf(events));
  }
  return ids;
}

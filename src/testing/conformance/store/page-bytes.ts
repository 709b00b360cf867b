// Pages are bounded in bytes, not only in events: large events must not fill the memory of a reader.

import assert from 'node:assert/strict';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import type { EventFilter } from '../../../store/event-filter.ts';
import type { EventStore, FeedItem, ReadOptions } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { follow, idsOf, newEvent, newStream, unique, type StoreCases } from './fixture.ts';

const pageBytes = 65_536;
/** A page that is bounded in events only would have all of them. */
const pageSize = 100;

export const pageBytesCases: StoreCases = {
  'a page of a stream ends with the event that reaches its size': async ({ store }) => {
    const { stream, events } = await appendMixed(store);
    for (const direction of ['forwards', 'backwards'] as const) {
      const reader = store.readStream(stream, { direction, pageSize, pageBytes });
      const pages = await Array.fromAsync(reader.pages());
      assertBounded(pages);
      assert.deepEqual(idsOf(pages.flat()), inOrder(events, direction));
    }
  },

  'a page of all events ends with the event that reaches its size, with any filter': async ({
    open,
  }) => {
    const store = await open();
    const { stream, events, tenant, category, type } = await appendMixed(store);
    await appendMixed(store);
    const ids = new Set(idsOf(events));
    const filters: readonly EventFilter[] = [
      {},
      { types: [type] },
      { typePrefixes: [type.slice(0, -3)] },
      { category },
      { tenant },
      { streamPrefixes: [stream] },
    ];
    for (const filter of filters) {
      for (const direction of ['forwards', 'backwards'] as const) {
        const options: ReadOptions = { direction, pageSize, pageBytes };
        const pages = await Array.fromAsync(store.readAll({ ...options, filter }).pages());
        assertBounded(pages);
        const found = pages.flat().filter(({ eventId }) => ids.has(eventId));
        assert.deepEqual(idsOf(found), inOrder(events, direction), JSON.stringify(filter));
      }
    }
  },

  'a limit counts events over several pages of large events': async ({ store }) => {
    const { stream, events } = await appendMixed(store);
    const read = await store.readStream(stream, { limit: 9, pageSize, pageBytes }).toArray();
    assert.deepEqual(idsOf(read), idsOf(events.slice(0, 9)));
  },

  'a subscription delivers pages of that size, while catching up and live': async ({
    open,
    signal,
  }) => {
    const store = await open();
    const first = await appendMixed(store);
    await using follower = follow(store.subscribe({ signal, pageSize, pageBytes }));
    const items = await follower.caughtUp();
    const second = await appendMixed(store);
    const events = [...first.events, ...second.events];
    const more = await follower.until(() => follower.events.length === events.length);
    assertBounded(pagesOf([...items, ...more]));
    assert.deepEqual(idsOf(follower.events), idsOf(events));
  },

  'a subscription to a stream delivers pages of that size': async ({ store, signal }) => {
    const { stream, events } = await appendMixed(store);
    const options = { signal, pageSize, pageBytes };
    await using follower = follow(store.subscribeToStream(stream, options));
    assertBounded(pagesOf(await follower.caughtUp()));
    assert.deepEqual(idsOf(follower.events), idsOf(events));
  },

  'a reader with `aroundLoad` loads no page before the previous one is consumed': async ({
    open,
    signal,
  }) => {
    const store = await open();
    const { events } = await appendMixed(store);
    let loaded = 0;
    let consumed = 0;
    const aroundLoad = async <Page>(load: () => Promise<Page>): Promise<Page> => {
      assert.equal(loaded, consumed);
      loaded += 1;
      return load();
    };
    const seen: string[] = [];
    for await (const item of store.subscribe({ signal, pageSize, pageBytes, aroundLoad })) {
      if (item.kind === 'caughtUp') break;
      if (item.kind !== 'events') continue;
      seen.push(...idsOf(item.events));
      consumed += 1;
    }
    assert.deepEqual(seen, idsOf(events));
    assert.ok(loaded >= 6, `${loaded} pages were loaded`);
  },
};

/** Appends small events, then large ones, then small ones again, one append each. */
async function appendMixed(store: EventStore): Promise<{
  readonly stream: string;
  readonly tenant: string;
  readonly category: string;
  readonly type: string;
  readonly events: readonly DomainEventEnvelope[];
}> {
  const tenant = unique('t');
  const category = `${unique('b')}.account.v1`;
  const stream = newStream(category, tenant);
  const type = `account.${unique('c')}.v1`;
  const aggregate = {
    bc: category.split('.')[0] ?? '',
    type: 'account',
    id: stream.split('-')[2] ?? '',
  };
  const sizes = [10, 10, 10, 70_000, 40_000, 10, 150_000, 20_000, 20_000, 20_000, 70_000, 10, 10];
  const events = sizes.map((size) =>
    newEvent({ type, tenant, aggregate, payload: { text: 'x'.repeat(size) } }),
  );
  for (const event of events) await store.append(stream, [event]);
  return { stream, tenant, category, type, events };
}

function inOrder(
  events: readonly DomainEventEnvelope[],
  direction: 'forwards' | 'backwards',
): readonly string[] {
  return direction === 'forwards' ? idsOf(events) : idsOf(events).toReversed();
}

function pagesOf(items: readonly FeedItem[]): readonly (readonly RecordedEvent[])[] {
  return items.flatMap((item) => (item.kind === 'events' ? [item.events] : []));
}

function assertBounded(pages: readonly (readonly RecordedEvent[])[]): void {
  for (const page of pages) {
    const beforeLast = page
      .slice(0, -1)
      .reduce((sum, { payload }) => sum + 2 * JSON.stringify(payload).length, 0);
    assert.ok(beforeLast < pageBytes, `a page has ${beforeLast} bytes before its last event`);
  }
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../../engines/memory/index.ts';
import type { EventStore, SubscribeOptions } from '../../../store/event-store.ts';
import { newEvents } from '../../../testing/conformance/store/fixture.ts';
import { kurrentStoreOptions } from '../kurrent-server.ts';
import { followInPages } from './follow-in-pages.ts';
import { createPageSize } from './page-size.ts';

for (const kind of ['stream', 'all'] as const) {
  test(`${kind}: pages grow while catching up, no event is lost, and caughtUp is sent once`, async () => {
    await using store = openMemory(kurrentStoreOptions).store;
    await store.append('a-1', newEvents(300));
    const sizes: unknown[] = [];
    const watched: Pick<EventStore, 'subscribe' | 'subscribeToStream'> = {
      subscribe: (options: SubscribeOptions = {}) => {
        sizes.push(options.pageSize);
        return store.subscribe(options);
      },
      subscribeToStream: (stream, options = {}) => {
        sizes.push(options.pageSize);
        return store.subscribeToStream(stream, options);
      },
    };
    const source =
      kind === 'stream'
        ? { kind, stream: 'a-1' }
        : { kind, filter: {}, checkpointEvery: undefined };
    const size = createPageSize(100);
    const stopping = new AbortController();
    const start = kind === 'stream' ? -1 : 0;
    const seen: number[] = [];
    let caughtUp = 0;
    for await (const item of followInPages(watched, { source }, { start, size }, stopping.signal)) {
      if (item.kind === 'caughtUp') {
        caughtUp += 1;
        await store.append('a-1', newEvents(50));
      }
      assert.notEqual(item.kind, 'fellBehind');
      if (item.kind !== 'events') continue;
      seen.push(...item.events.map(({ revision }) => revision));
      size.took(item.events.length, item.events.length * 100);
      if (seen.length === 350) stopping.abort();
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 350 }, (_, index) => index),
    );
    assert.equal(caughtUp, 1);
    assert.deepEqual(sizes, [16, 32, 64, 100, 100]);
  });
}

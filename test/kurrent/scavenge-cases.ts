// Cases of the adapter on a server that removes hidden events, so that no record is at the position of a checkpoint.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  unique,
} from '../../src/testing/conformance/store/fixture.ts';

export interface ScavengedServer {
  readonly url: string;
  scavenge(): Promise<void>;
}

export function scavengeCases(serve: () => Promise<ScavengedServer>): void {
  test('reads and subscriptions continue after a scavenged position', async ({ signal }) => {
    const server = await serve();
    await using db = await openKurrent(server.url);
    const { store } = db;
    const category = unique('c');
    const [first, second] = [newStream(category), newStream(category)];
    const { position: after } = await store.append(first, newEvents(10));
    const later = newEvents(60);
    for (let at = 0; at < later.length; at += 6)
      await store.append(second, later.slice(at, at + 6));
    const end = newEvent();
    await store.append(first, [end]);
    await store.setStreamMetadata(first, { maxCount: 1 });
    await server.scavenge();
    // The server evaluates only a part of the second and the third filter.
    for (const filter of [
      { streamPrefixes: [category] },
      { category, types: ['account.credited.v1'] },
      { category, tenant: 'core' },
    ]) {
      const read = await store.readAll({ after, filter }).toArray();
      assert.deepEqual(idsOf(read), idsOf([...later, end]));
      await using follower = follow(store.subscribe({ after, filter, signal }));
      assert.deepEqual(idsOf(await follower.before(end.eventId)), idsOf(later));
    }
  });
}

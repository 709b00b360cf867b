// The database executed an append, but its reply was lost: the retry must find the stored events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { hasCode } from '../../src/foundation/error.ts';
import type { AppendResult, EventStore, ExpectedRevision } from '../../src/store/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { startCutProxy } from './cut-proxy.ts';
import { newEvents, readLocations, streamName } from './rig.ts';

type Append = (store: EventStore, name: string) => Promise<readonly AppendResult[]>;

const one =
  (expected: ExpectedRevision, count: number): Append =>
  async (store, name) => [
    await store.append(streamName('a'), newEvents(name, count), { expected }),
  ];

const appends: Readonly<Record<string, Append>> = {
  'of one event': one('any', 1),
  'of several events': one('any', 5),
  'to a stream that must exist': one('exists', 2),
  'at a revision': one(1, 3),
  'to several streams': (store, name) =>
    store.appendMany([
      { stream: streamName('a'), events: newEvents(`${name}-a`, 2), expected: 1 },
      { stream: streamName('b'), events: newEvents(`${name}-b`, 3), expected: 'none' },
    ]),
};

for (const [kind, append] of Object.entries(appends)) {
  test(`an append ${kind} whose reply was lost is stored once, and the retry returns its position`, async () => {
    const { url } = await sharedPostgres();
    await using proxy = await startCutProxy(url);
    await using db = await openPostgres(proxy.url);
    const { store } = db;
    await store.append(streamName('a'), newEvents('before', 2));
    proxy.cut('append', 2);
    const results = await append(store, 'lost');
    assert.equal(proxy.cuts, 2);
    const locations = await readLocations(store);
    assert.equal(new Set(locations.map(({ eventId }) => eventId)).size, locations.length);
    for (const { stream, revision, position, isDuplicate } of results) {
      const last = locations.findLast((location) => location.stream === stream);
      assert.deepEqual(
        { revision, position },
        { revision: last?.revision, position: last?.position },
      );
      assert.equal(isDuplicate, true);
    }
  });
}

test('an append whose replies are all lost fails as unknown, and repeating it later finds the events', async () => {
  const { url } = await sharedPostgres();
  await using proxy = await startCutProxy(url);
  await using db = await openPostgres(proxy.url);
  const { store } = db;
  const events = newEvents('lost', 2);
  proxy.cut('append', 100);
  await assert.rejects(
    store.append(streamName('a'), events, { expected: 'none' }),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
  );
  proxy.cut('', 0);
  const { isDuplicate, revision } = await store.append(streamName('a'), events, {
    expected: 'none',
  });
  assert.deepEqual({ isDuplicate, revision }, { isDuplicate: true, revision: 1 });
  assert.equal((await readLocations(store)).length, 2);
});

test('every append of a batch whose reply was lost gets its own result', async () => {
  const { url } = await sharedPostgres();
  await using proxy = await startCutProxy(url);
  await using db = await openPostgres(proxy.url);
  const { store } = db;
  await store.append(streamName('a'), newEvents('before', 1));
  proxy.cut('append', 3);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, index) => {
      // Of the appends that expect the same revision, one succeeds, and the retry chooses the same one.
      const expected = index % 4 === 0 ? 0 : 'any';
      const stream = streamName(index % 4 === 0 ? 'a' : `s${index % 5}`);
      return store.append(stream, newEvents(`e${index}`, 2), { expected });
    }),
  );
  assert.ok(proxy.cuts > 0);
  const locations = new Map(
    (await readLocations(store)).map((location) => [location.eventId, location]),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 9);
  for (const [index, outcome] of outcomes.entries()) {
    const last = locations.get(`e${index}-1`);
    if (outcome.status === 'fulfilled') {
      const { revision, position } = outcome.value;
      assert.deepEqual(
        { revision, position },
        { revision: last?.revision, position: last?.position },
      );
    } else {
      assert.ok(hasCode(outcome.reason, 'VERSION_CONFLICT'), String(outcome.reason));
      assert.equal(last, undefined);
    }
  }
});

// What remains of a person on a KurrentDB server, tried on the stand-in: docs/erasure.md advises a scavenge.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { isForgotten, keyStreamPrefix } from '../../src/store/erasure.ts';
import { newEvent, newStream } from '../../src/testing/conformance/store/fixture.ts';
import { runningCases } from '../../src/testing/conformance/projections/running.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';

for (const preset of ['23.10', '24.10'] as const) {
  test(`stand-in of ${preset}: the key of a forgotten person stays until the server scavenges`, async () => {
    await using server = await startStandIn({ preset });
    await using db = await openKurrent(server.url);
    const stream = newStream();
    const event = newEvent({ payload: { name: 'Zelda' }, headers: { dataSubject: 'zelda' } });
    await db.store.append(stream, [event]);
    const records = async (): Promise<string> =>
      JSON.stringify(await server.store.readAll({ filter: { system: true } }).toArray());
    const all = await server.store.readAll({ filter: { system: true } }).toArray();
    const stored = all.find((each) => each.stream.startsWith(keyStreamPrefix));
    const { key = '' } = (stored?.payload ?? {}) as { readonly key?: string };
    assert.ok(key.length > 40);
    assert.doesNotMatch(await records(), /Zelda/);

    await db.store.forget('zelda');
    assert.ok((await records()).includes(key), 'the log no longer has the key');
    assert.ok(server.scavenge() > 0);
    assert.ok(!(await records()).includes(key), 'the log still has the key');
    const [read] = await db.store.readStream(stream).toArray();
    assert.ok(isForgotten(read?.payload));
  });

  test(`stand-in of ${preset}: documents of events that a stream hides are erased`, async () => {
    await using server = await startStandIn({ preset });
    await using db = await openKurrent(server.url);
    await using memory = openMemory();
    const handle = { ...memory, store: db.store };
    const title =
      'forgetting a person removes their data also from documents of events that the stream hides';
    await runningCases[title]?.({ db: handle, fixture: { open: async () => handle } });
    assert.ok(runningCases[title] !== undefined);
  });
}

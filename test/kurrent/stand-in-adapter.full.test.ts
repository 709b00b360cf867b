// The adapter on the stand-in for a real EventStoreDB: with other clients, and while its server restarts.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { MillraceError } from '../../src/foundation/error.ts';
import { subjectHeader } from '../../src/store/index.ts';
import { newEvent, newStream, unique } from '../../src/testing/conformance/store/fixture.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { connectForeign, foreignCases } from './foreign-cases.ts';
import { recoveryCases, type KillableServer } from './recovery-cases.ts';

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

const server = opened.use(await startStandIn({ preset: '24.10' }));
const context = opened.use(await connectForeign(server));
describe('other clients, on the stand-in 24.10', () => foreignCases(context));

test(
  'a client that prefers followers consumes a group, which only the leader serves',
  { timeout: 60_000 },
  async ({ signal }) => {
    const cluster = opened.use(await startStandIn({ preset: 'cluster' }));
    await using db = await openKurrent(cluster.url);
    const [stream, event] = [newStream(), newEvent()];
    await db.store.append(stream, [event]);
    for await (const delivery of db.store.consume({ group: unique('g'), stream, signal })) {
      assert.equal(delivery.event.eventId, event.eventId);
      await delivery.ack();
      break;
    }
  },
);

test(
  'a consumer gets an event again whose key could not be read',
  { timeout: 60_000 },
  async ({ signal }) => {
    const key = { kind: 'key', key: new Uint8Array(32) } as const;
    let failures = 0;
    await using db = await openKurrent(server.url, {
      keys: {
        async get(subjects) {
          failures -= 1;
          if (failures === 0) throw new MillraceError('STORE_UNAVAILABLE', 'keys unavailable');
          return new Map(subjects.map((subject) => [subject, key]));
        },
        forget: async () => false,
      },
    });
    const [stream, event] = [newStream(), newEvent({ headers: { [subjectHeader]: 'person-1' } })];
    await db.store.append(stream, [event]);
    failures = 1;
    for await (const delivery of db.store.consume({ group: unique('g'), stream, signal })) {
      assert.deepEqual(delivery.event.payload, event.payload);
      await delivery.ack();
      break;
    }
    assert.ok(failures < 0);
  },
);

test('opening waits for a server that is not ready', { timeout: 60_000 }, async () => {
  const switches = { notReadyCalls: 8 };
  const starting = opened.use(await startStandIn({ preset: '23.10', switches }));
  await using db = await openKurrent(starting.url);
  assert.equal(starting.refusedCalls, 8);
  assert.deepEqual(await db.store.readAll({ limit: 1 }).toArray(), []);
});

for (const preset of ['23.10', 'cluster'] as const) {
  describe(`a restart of the server, on the stand-in ${preset}`, () =>
    recoveryCases(() => serve(preset)));
}

/** The first calls after each restart are refused, as by a server that is not ready. */
async function serve(preset: Preset): Promise<KillableServer> {
  const own = await startStandIn({ preset, switches: { notReadyCalls: 3 } });
  const openGate = own.holdReady();
  openGate();
  return {
    url: own.url,
    kill: () => own.stop(),
    startAgain: () => own.restart(),
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  };
}

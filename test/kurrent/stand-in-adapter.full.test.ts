// The adapter on the stand-in for a real EventStoreDB: with other clients, and while its server restarts.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
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

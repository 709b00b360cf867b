// The adapter on the stand-in for a real EventStoreDB: with other clients, and while its server restarts.

import { after, describe } from 'node:test';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { connectForeign, foreignCases } from './foreign-cases.ts';
import { recoveryCases, type KillableServer } from './recovery-cases.ts';

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

const server = opened.use(await startStandIn({ preset: '24.10' }));
const context = opened.use(await connectForeign(server));
describe('other clients, on the stand-in 24.10', () => foreignCases(context));

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

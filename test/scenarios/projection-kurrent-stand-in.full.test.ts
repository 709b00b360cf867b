// A projection on the stand-in for EventStoreDB: a caller of another process waits for it.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { createPlatform, defineModule } from '../../src/platform/index.ts';
import { projection, readModel } from '../../src/projections/index.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { createWorkspace } from '../store/rig.ts';

const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
const open = defineCommand('account.open', z.object({ owner: z.string() }));
const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [opened],
  commands: [open],
  initial: '',
  evolve: { 'account.opened.v1': (_owner, payload) => payload.owner },
  decide: { 'account.open': ({ owner }) => opened({ owner }) },
});
const accounts = projection({
  name: 'sub:banking:accounts:v1',
  readModel: readModel<{ readonly owner: string }>({
    bc: 'banking',
    aggregate: 'account',
    version: 1,
  }),
  on: {
    'account.opened.v1': (_document, { payload }: { readonly payload: { owner: string } }) => ({
      owner: payload.owner,
    }),
  },
});
const banking = defineModule({ name: 'banking', aggregates: [account], projections: [accounts] });

for (const preset of ['23.10', '24.10', 'cluster'] as const) {
  test(`a caller waits for a projection of another process, on the stand-in ${preset}`, async () => {
    await using workspace = await createWorkspace();
    await using server = await startStandIn({ preset });
    const outbox = `sqlite:${join(workspace.folder, 'outbox.db')}`;
    const config = { engines: { store: server.url, outbox }, modules: [banking] };
    await using caller = await createPlatform({ ...config, roles: ['api'] });
    await caller.start();
    const ids = Array.from({ length: 12 }, (_, index) => `a-${index}`);
    const openAccount = async (id: string): Promise<void> => {
      const command = { type: 'account.open', payload: { owner: id } };
      const { position } = await caller.handle({ tenant: 'core', id, command });
      assert.ok(position !== undefined);
      await caller.waitFor(accounts, position);
    };
    const early = Promise.all(ids.slice(0, 10).map(openAccount));
    await using worker = await createPlatform(config);
    await worker.start();
    await early;
    for (const id of ids.slice(10)) await openAccount(id);
    const documents = worker.documents({ bc: 'banking', aggregate: 'account' });
    for (const id of ids) {
      assert.deepEqual((await documents.get('core', id))?.document, { owner: id });
    }
  });
}

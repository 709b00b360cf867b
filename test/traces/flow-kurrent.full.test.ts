// A store that keeps nothing but events: the trace index is in the database of the outbox.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { flowCases } from './flow-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-flow-'));
const backing = openMemory(kurrentStoreOptions);
const server = await startKurrentServer(backing.store, { port: 0 });
after(async () => {
  await server[Symbol.asyncDispose]();
  await backing[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

flowCases('kurrentdb', async () => ({
  store: server.url,
  outbox: `sqlite:${join(folder, 'side.db')}`,
}));

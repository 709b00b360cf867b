// Tokens on shared engines: one process sees the changes of another.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKurrent } from '../src/engines/kurrentdb/index.ts';
import { openMemory } from '../src/engines/memory/index.ts';
import { openPostgres } from '../src/engines/postgres/index.ts';
import { openSqlite } from '../src/engines/sqlite/index.ts';
import { hasCode } from '../src/foundation/error.ts';
import { openTokens } from '../src/platform/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../src/server/kurrent/index.ts';
import type { EventStore } from '../src/store/event-store.ts';
import { sharedPostgres } from '../src/testing/servers/shared-servers.ts';
import { ownedRole } from '../src/testing/owned-role.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-tokens-'));
after(() => rm(folder, { recursive: true, force: true }));
const { url } = await sharedPostgres();
const backing = openMemory(kurrentStoreOptions);
const server = await startKurrentServer(backing.store, {
  port: 0,
  // Tokens may be written only by an administrator, so every caller is one.
  authenticate: () => ({ scopes: ['admin'] }),
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await backing[Symbol.asyncDispose]();
});

const engines: Readonly<Record<string, () => Promise<EventStore>>> = {
  SQLite: async () => ownedRole(await openSqlite(`sqlite:${join(folder, 'events.db')}`), 'store'),
  async PostgreSQL() {
    const options = { schema: 'tokens', roles: ['store'], connectionsMax: 3 } as const;
    return ownedRole(await openPostgres(url, options), 'store');
  },
  KurrentDB: async () => ownedRole(await openKurrent(`${server.url}&discoveryInterval=1`), 'store'),
};

for (const [engine, open] of Object.entries(engines)) {
  test(`${engine}: a token created or revoked by one process is known to the other`, async () => {
    await using mine = await open();
    await using theirs = await open();
    await using tokens = await openTokens(mine);
    await using others = await openTokens(theirs);
    const wanted = { name: 'shop', tenant: 'core', scopes: ['append'] } as const;
    const { token, secret } = await tokens.create(wanted);
    assert.deepEqual(await others.list(), [token]);
    await assert.rejects(others.create(wanted), (error) => hasCode(error, 'TOKEN_EXISTS'));
    const ended = others.verify(secret, 'shop')?.ended;
    assert.ok(ended);
    const fired = once(ended, 'abort', { signal: AbortSignal.timeout(120_000) });
    await tokens.revoke('shop');
    await fired;
    assert.equal(others.verify(secret, 'shop'), undefined);
    assert.deepEqual(await mine.readAll().toArray(), []);
  });
}

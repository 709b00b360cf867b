// Scope × route, command, gRPC method and WebSocket message: docs/scopes.md lists them, and the servers enforce them.

import { credentials, Client, Metadata, status } from '@grpc/grpc-js';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { openMemory } from '../../src/engines/memory/index.ts';
import { allowsScope, tokenScopes } from '../../src/platform/tokens/scopes.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { grpcServices, ownRoutes, withScopeReference } from '../../tools/scope-reference.ts';
import { openAllModules } from './api-of-all-modules.ts';

test('docs/scopes.md lists every route, command, method and message (npm run generate)', async () => {
  const page = await readFile(new URL('../../docs/scopes.md', import.meta.url), 'utf8');
  assert.equal(page, await withScopeReference(page));
});

test('every route rejects each scope that docs/scopes.md does not list for it', async () => {
  await using rig = await openAllModules();
  const { tokens } = rig.platform;
  let denied = 0;
  for (const scope of tokenScopes) {
    const { secret } = await tokens.create({ name: `only-${scope}`, scopes: [scope] });
    const others = ownRoutes(rig.api).filter(
      ({ access }) => access !== 'anonymous' && !allowsScope([scope], access),
    );
    const calls = others.map(async ({ method, path }) => {
      const code = await rig.call(method, path, `Bearer ${secret}`);
      assert.equal(code, 403, `${scope}: ${method} ${path}`);
    });
    await Promise.all(calls);
    denied += calls.length;
  }
  assert.ok(denied > 800, `${denied} requests`);
});

test('an internal command cannot be sent by any client, not even by an administrator', async () => {
  await using rig = await openAllModules();
  const { modules, tokens } = rig.platform;
  const { secret } = await tokens.create({ name: 'ops', scopes: ['admin'] });
  const types = [...modules.aggregates.values()].flatMap((each) =>
    each.commands.map(({ type }) => type),
  );
  const open: string[] = [];
  for (const type of types) {
    const code = await rig.call('POST', `/api/v1/commands/${type}`, `Bearer ${secret}`);
    if (code !== 404) open.push(type);
  }
  assert.deepEqual(open.toSorted(), [...modules.commands.keys()].toSorted());
  assert.equal(open.includes('slack-workspace.remove'), false);
});

test('every gRPC method rejects each scope that docs/scopes.md does not list for it', async () => {
  await using db = openMemory(kurrentStoreOptions);
  await using server = await startKurrentServer(db.store, {
    port: 0,
    authenticate: (given) => {
      const scope = tokenScopes.find((each) => given?.kind === 'bearer' && given.token === each);
      return scope === undefined ? undefined : { scopes: [scope] };
    },
  });
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  const methods = Object.entries(grpcServices()).flatMap(([service, own]) =>
    Object.entries(own).map(([name, { access }]) => ({ path: `/${service}/${name}`, access })),
  );
  for (const { path, access } of methods.filter((each) => each.access !== 'anonymous')) {
    assert.equal(await codeOf(client, path, 'unknown'), status.UNAUTHENTICATED, path);
    for (const scope of tokenScopes) {
      const isAllowed = access !== 'anonymous' && allowsScope([scope], access);
      if (isAllowed) continue;
      assert.equal(await codeOf(client, path, scope), status.PERMISSION_DENIED, `${scope} ${path}`);
    }
  }
  client.close();
});

/** The status of a call with one empty message; all kinds of calls look the same on the wire. */
async function codeOf(client: Client, path: string, token: string): Promise<number> {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  const bytes = (message: Buffer): Buffer => message;
  const call = client.makeBidiStreamRequest(path, bytes, bytes, metadata);
  call.on('error', () => undefined);
  call.on('data', () => undefined);
  const ended = new Promise<number>((resolve) => {
    call.on('status', ({ code }) => resolve(code));
  });
  call.end(Buffer.alloc(0));
  return ended;
}

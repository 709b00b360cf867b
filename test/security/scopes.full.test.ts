// Scope × route, command, gRPC method and WebSocket message: docs/scopes.md lists them, and the servers enforce them.

import { credentials, Client, Metadata, status } from '@grpc/grpc-js';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { openMemory } from '../../src/engines/memory/index.ts';
import { mayCall, type Access } from '../../src/platform/modules/principal.ts';
import { allowsScope, tokenScopes } from '../../src/platform/tokens/scopes.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { consoleRoutes } from '../../tools/console-api.ts';
import {
  grpcServices,
  ownRoutes,
  socketMessages,
  withScopeReference,
  type SocketMessage,
} from '../../tools/scope-reference.ts';
import { openAllModules, type SecuredApi } from './api-of-all-modules.ts';

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
  assert.ok(denied > 700, `${denied} requests`);
});

test('credentials of one tenant are refused by every route that docs/scopes.md marks with all tenants', async () => {
  await using rig = await openAllModules();
  const { tokens } = rig.platform;
  const routes = ownRoutes(rig.api);
  for (const scope of tokenScopes) {
    const { secret } = await tokens.create({ name: scope, scopes: [scope], tenant: 'core' });
    const calls = routes
      .filter(({ access, isGlobal }) => access !== 'anonymous' && isGlobal === true)
      .map(async ({ method, path }) => {
        const code = await rig.call(method, path, `Bearer ${secret}`);
        assert.equal(code, 403, `${scope} of a tenant: ${method} ${path}`);
      });
    assert.ok(calls.length > 40, `${calls.length} routes`);
    await Promise.all(calls);
  }
});

test('the session of the console lists exactly those of its routes that the server does not refuse', async () => {
  await using rig = await openAllModules();
  const { tokens } = rig.platform;
  const routes = ownRoutes(rig.api).filter(({ access }) => access !== 'anonymous');
  const used = routes.filter((each) =>
    (consoleRoutes as readonly string[]).includes(`${each.method} ${each.path}`),
  );
  assert.ok(used.length > 30, `${used.length} routes`);
  const checkRole = async (scope: 'read' | 'operate' | 'admin', tenant?: string): Promise<void> => {
    const name = `${scope}-${tenant ?? 'all'}`;
    const { token, secret } = await tokens.create({ name, scopes: [scope], tenant });
    const session = await tokens.openSession({ token });
    const { may } = await sessionOf(rig.api.url, session.secret);
    const checks = used.map(async (each) => {
      const { method, path } = each;
      const shown = `${name}: ${method} ${path}`;
      const isAllowed = mayCall(each, { scopes: [scope], ...(tenant && { tenant }) });
      assert.equal(may.includes(`${method} ${path}`), isAllowed, shown);
      const code = await rig.call(method, path, `Bearer ${secret}`);
      // Credentials of a tenant see no stream of this name.
      const isForeign = tenant !== undefined && path.includes('{stream}');
      assert.equal(code === 403, !isAllowed || isForeign, `${shown} ${code}`);
    });
    await Promise.all(checks);
  };
  // At the same time: an unknown trace is looked for during two seconds.
  const roles = (['read', 'operate', 'admin'] as const).flatMap((scope) => [
    checkRole(scope),
    checkRole(scope, 'core'),
  ]);
  await Promise.all(roles);
});

/** As a browser asks for it. */
async function sessionOf(url: string, secret: string): Promise<{ readonly may: string[] }> {
  const cookie = `millrace-console-${new URL(url).port}=${secret}`;
  const headers = { cookie, 'x-millrace-app': 'console', origin: url };
  const response = await fetch(`${url}/console/session`, { headers });
  return ((await response.json()) as { session: { may: string[] } }).session;
}

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

test('every WebSocket message and command rejects each scope that docs/scopes.md does not list for it', async () => {
  await using rig = await openAllModules();
  const { modules, tokens } = rig.platform;
  const messages = socketMessages(rig.api).filter(({ access }) => access !== 'anonymous');
  const commands = [...modules.aggregates.values()].flatMap((each) => each.commands);
  // An internal command has no access.
  const rows = messages.flatMap((message): readonly MessageRow[] =>
    message.access === 'command'
      ? commands.map(({ type }) => ({
          message: sample(message, { command: type }),
          access: modules.commands.get(type)?.scope,
        }))
      : [{ message: sample(message), access: message.access }],
  );
  assert.ok(rows.length > 75, `${rows.length} messages`);
  for (const scope of tokenScopes) {
    const { secret } = await tokens.create({ name: `only-${scope}`, scopes: [scope] });
    const replies = await repliesTo(
      rig,
      rows.map(({ message }) => message),
      secret,
    );
    for (const [index, { message, access }] of rows.entries()) {
      const shown = `${scope}: ${JSON.stringify(message)} ${replies[index]}`;
      if (access === undefined) assert.match(replies[index] ?? '', /"status":404/, shown);
      else {
        const isAllowed = access === 'anonymous' || allowsScope([scope], access);
        assert.equal(isDenied(replies[index], access), !isAllowed, shown);
      }
    }
  }
});

test('every WebSocket message without credentials closes the connection', async () => {
  await using rig = await openAllModules();
  for (const message of socketMessages(rig.api)) {
    const socket = new WebSocket(`${rig.api.url.replace('http', 'ws')}/ws`);
    await once(socket, 'open');
    socket.send(JSON.stringify(sample(message)));
    const [code] = (await once(socket, 'close')) as [number];
    assert.equal(code, 4401, message.type);
  }
});

interface MessageRow {
  readonly message: object;
  readonly access: Access | undefined;
}

/** A message with the required fields. */
function sample({ type, schema }: SocketMessage, given: object = {}): object {
  const { properties, required } = schema;
  const values = required.map((name) => [name, properties[name]?.type === 'string' ? 'x' : {}]);
  return { ...(Object.fromEntries(values) as object), type, ...given };
}

const isDenied = (reply: string | undefined, access: Access): boolean =>
  reply?.includes(`this needs the scope '${access}'`) === true;

/** Sends the messages in turn; a reply has the id of its message. */
async function repliesTo(
  { api }: SecuredApi,
  messages: readonly object[],
  token: string,
): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${api.url.replace('http', 'ws')}/ws`, { headers });
  await once(socket, 'open');
  const replies: string[] = [];
  for (const [index, message] of messages.entries()) {
    const reply = Promise.withResolvers<string>();
    const take = (data: Buffer): void => {
      if (data.toString().includes(`"id":"m${index}"`)) reply.resolve(data.toString());
    };
    socket.on('message', take);
    socket.send(JSON.stringify({ ...message, id: `m${index}` }));
    // A module may accept a message without a reply, but a rejection precedes the reply to the next message.
    if (!('id' in message)) socket.send(JSON.stringify({ type: 'unsubscribe', id: `m${index}` }));
    replies.push(await reply.promise);
    socket.off('message', take);
  }
  socket.terminate();
  return replies;
}

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

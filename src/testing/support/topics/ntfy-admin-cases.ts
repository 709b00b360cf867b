// Requests of administrators: users, access rules, the version.

import assert from 'node:assert/strict';
import { newTopic, poll, publish, send, type CaseServer, type NtfyCase } from './ntfy-case.ts';
import { benToken } from './ntfy-server-facts.ts';

type Body = Readonly<Record<string, unknown>> | string;

const basic = (user: string, password: string): Readonly<Record<string, string>> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const root = basic('root', 'rootpass');
const caseOf = (title: string, run: (server: CaseServer) => Promise<void>): NtfyCase => ({
  title: `administrators: ${title}`,
  run,
});

async function ask(
  server: CaseServer,
  request: `${string} /${string}`,
  body?: Body,
  headers: Readonly<Record<string, string>> = root,
): Promise<{ readonly status: number; readonly json: unknown }> {
  const [method = '', path = ''] = request.split(' ');
  const sent = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  const response = await send(server, '', {
    method,
    path,
    headers,
    ...(sent === undefined ? {} : { body: sent }),
  });
  return { status: response.status, json: await response.json() };
}

async function does(
  server: CaseServer,
  request: `${string} /${string}`,
  body: Body,
): Promise<void> {
  assert.deepEqual(await ask(server, request, body), { status: 200, json: { success: true } });
}

const rejects = (
  title: string,
  request: `${string} /${string}`,
  body: Body | undefined,
  code: number,
  headers?: Readonly<Record<string, string>>,
): NtfyCase =>
  caseOf(title, async (server) => {
    const { status, json } = await ask(server, request, body, headers);
    assert.equal((json as { readonly code?: number }).code, code, JSON.stringify(json));
    assert.equal(status, Math.floor(code / 100));
  });

interface ShownUser {
  readonly username: string;
  readonly role: string;
  readonly grants?: readonly { readonly topic: string; readonly permission: string }[];
}

async function usersOf(server: CaseServer): Promise<readonly ShownUser[]> {
  return (await ask(server, 'GET /v1/users')).json as readonly ShownUser[];
}

const newUser = (): string => newTopic().replace('t', 'u');

/** A topic that is denied until a rule allows it. */
const closed = (): string => `closed-${newTopic()}`;

async function statusOf(
  server: CaseServer,
  topic: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  return (await send(server, topic, { headers, body: 'x' })).status;
}

export const adminCases: readonly NtfyCase[] = [
  caseOf('read the version', async (server) => {
    const { status, json } = await ask(server, 'GET /v1/version');
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(json as object), ['version', 'commit', 'date']);
    assert.match((json as { readonly version: string }).version, /^\d+\.\d+/);
  }),
  rejects('anonymous requests cannot read the version', 'GET /v1/version', undefined, 40101, {}),
  rejects('users cannot read the version', 'GET /v1/version', undefined, 40101, {
    Authorization: `Bearer ${benToken}`,
  }),
  caseOf('list users by role, with their grants', async (server) => {
    const users = await usersOf(server);
    assert.deepEqual(users[0], { username: 'root', role: 'admin' });
    const ben = users.find(({ username }) => username === 'ben');
    assert.deepEqual(ben, {
      username: 'ben',
      role: 'user',
      grants: [
        { topic: 'closed-news-*', permission: 'read-only' },
        { topic: 'closed-ben-*', permission: 'read-write' },
      ],
    });
    const last = users.at(-1);
    assert.deepEqual([last?.username, last?.role], ['*', 'anonymous']);
    assert.ok(
      last?.grants?.some(
        ({ topic, permission }) => topic === 'closed-*' && permission === 'deny-all',
      ),
    );
  }),
  rejects('anonymous requests cannot list users', 'GET /v1/users', undefined, 40101, {}),
  rejects('users cannot list users', 'GET /v1/users', undefined, 40101, basic('ben', 'benpass')),
  rejects(
    'anonymous requests cannot add users',
    'POST /v1/users',
    { username: 'x', password: 'y' },
    40101,
    {},
  ),
  caseOf('add a user, who can then authenticate', async (server) => {
    const username = newUser();
    assert.equal(await statusOf(server, newTopic(), basic(username, 'secret')), 401);
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    assert.equal(await statusOf(server, newTopic(), basic(username, 'secret')), 200);
    assert.equal(await statusOf(server, newTopic(), basic(username, 'wrong')), 401);
    const found = (await usersOf(server)).find((each) => each.username === username);
    assert.deepEqual(found, { username, role: 'user' });
  }),
  caseOf('cannot add a user twice', async (server) => {
    const username = newUser();
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    const again = await ask(server, 'POST /v1/users', { username, password: 'other' });
    assert.equal((again.json as { readonly code: number }).code, 40901);
    assert.equal(await statusOf(server, newTopic(), basic(username, 'secret')), 200);
  }),
  rejects(
    'cannot add a user of the configuration',
    'POST /v1/users',
    { username: 'ben', password: 'x' },
    40901,
  ),
  rejects('cannot add a user without a password', 'POST /v1/users', { username: 'nopass' }, 40000),
  rejects('cannot add a user without a name', 'POST /v1/users', { password: 'x' }, 40000),
  rejects(
    'cannot add a user with an invalid name',
    'POST /v1/users',
    { username: 'a b', password: 'x' },
    40000,
  ),
  rejects(
    "add no user of everybody's name",
    'POST /v1/users',
    { username: '*', password: 'x' },
    40000,
  ),
  rejects(
    'cannot add a user with an unknown tier',
    'POST /v1/users',
    { username: newUser(), password: 'x', tier: 'gold' },
    40030,
  ),
  rejects('cannot add a user with a body that is not JSON', 'POST /v1/users', 'username=x', 40024),
  rejects(
    'cannot add a user whose name is a number',
    'POST /v1/users',
    { username: 5, password: 'x' },
    40024,
  ),
  rejects(
    'cannot add a user with an incomplete body',
    'POST /v1/users',
    `{"username":"${'x'.repeat(140_000)}"}`,
    41303,
  ),
  caseOf('change the password of a user', async (server) => {
    const username = newUser();
    await does(server, 'POST /v1/users', { username, password: 'old' });
    assert.equal(await statusOf(server, newTopic(), basic(username, 'old')), 200);
    await does(server, 'PUT /v1/users', { username, password: 'new' });
    assert.equal(await statusOf(server, newTopic(), basic(username, 'old')), 401);
    assert.equal(await statusOf(server, newTopic(), basic(username, 'new')), 200);
  }),
  caseOf('add an unknown user by setting its password', async (server) => {
    const username = newUser();
    await does(server, 'PUT /v1/users', { username, password: 'secret' });
    assert.equal(await statusOf(server, newTopic(), basic(username, 'secret')), 200);
  }),
  rejects(
    'cannot change an administrator',
    'PUT /v1/users',
    { username: 'root', password: 'x' },
    40301,
  ),
  rejects(
    'cannot change a user without a new password or tier',
    'PUT /v1/users',
    { username: 'ben' },
    40000,
  ),
  rejects(
    'cannot change a user with an invalid name',
    'PUT /v1/users',
    { username: 'a/b', password: 'x' },
    40000,
  ),
  caseOf('remove a user with its grants', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    await does(server, 'PUT /v1/users/access', { username, topic, permission: 'rw' });
    await does(server, 'DELETE /v1/users', { username });
    assert.equal(await statusOf(server, topic, basic(username, 'secret')), 401);
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    assert.equal(await statusOf(server, topic, basic(username, 'secret')), 403);
  }),
  rejects('cannot remove an unknown user', 'DELETE /v1/users', { username: 'nobody-here' }, 40031),
  rejects('cannot remove an administrator', 'DELETE /v1/users', { username: 'root' }, 40101),
  caseOf('allow a user to read and write a topic', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    const headers = basic(username, 'secret');
    assert.equal(await statusOf(server, topic, headers), 403);
    await does(server, 'POST /v1/users/access', { username, topic, permission: 'read-write' });
    const { id } = await publish(server, topic, { headers, body: 'inside' });
    const kept = await poll(server, topic, '', headers);
    assert.deepEqual(
      kept.map((each) => each.id),
      [id],
    );
    assert.equal(await statusOf(server, topic, {}), 403);
  }),
  caseOf('allow a user to write a topic, and then to read it only', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    const headers = basic(username, 'secret');
    await does(server, 'PUT /v1/users/access', { username, topic, permission: 'write-only' });
    assert.equal(await statusOf(server, topic, headers), 200);
    const read = await send(server, topic, { method: 'GET', path: '/{t}/json?poll=1', headers });
    assert.equal(read.status, 403);
    await does(server, 'PUT /v1/users/access', { username, topic, permission: 'RO' });
    assert.equal(await statusOf(server, topic, headers), 403);
    assert.equal((await poll(server, topic, '', headers)).length, 1);
  }),
  caseOf('allow a pattern of topics', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    await does(server, 'PUT /v1/users/access', { username, topic: `${topic}*`, permission: 'rw' });
    assert.equal(await statusOf(server, `${topic}-more`, basic(username, 'secret')), 200);
    const found = (await usersOf(server)).find((each) => each.username === username);
    assert.deepEqual(found?.grants, [{ topic: `${topic}*`, permission: 'read-write' }]);
  }),
  caseOf('deny a topic to all users, and remove that rule', async (server) => {
    const topic = newTopic();
    assert.equal(await statusOf(server, topic, {}), 200);
    await does(server, 'PUT /v1/users/access', { username: '*', topic, permission: 'deny-all' });
    assert.equal(await statusOf(server, topic, {}), 403);
    assert.equal(await statusOf(server, topic, root), 200);
    await does(server, 'DELETE /v1/users/access', { username: '*', topic });
    assert.equal(await statusOf(server, topic, {}), 200);
  }),
  caseOf('remove a grant', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    await does(server, 'PUT /v1/users/access', { username, topic, permission: 'rw' });
    await does(server, 'DELETE /v1/users/access', { username, topic });
    assert.equal(await statusOf(server, topic, basic(username, 'secret')), 403);
  }),
  caseOf('close the streams of a removed user', async (server) => {
    const [username, topic] = [newUser(), closed()];
    await does(server, 'POST /v1/users', { username, password: 'secret' });
    await does(server, 'PUT /v1/users/access', { username, topic, permission: 'rw' });
    const response = await send(server, topic, {
      method: 'GET',
      path: '/{t}/json',
      headers: basic(username, 'secret'),
    });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    assert.match(Buffer.from(first?.value ?? []).toString(), /"event":"open"/);
    await does(server, 'DELETE /v1/users', { username });
    // The stream ended or was disconnected.
    const rest = await reader?.read().catch(() => ({ done: true }));
    assert.equal(rest?.done, true);
  }),
  rejects(
    'cannot grant access to an unknown user',
    'PUT /v1/users/access',
    { username: 'nobody-here', topic: 'x', permission: 'rw' },
    40031,
  ),
  rejects(
    'cannot grant an unknown permission',
    'PUT /v1/users/access',
    { username: 'ben', topic: 'x', permission: 'all' },
    40025,
  ),
  rejects(
    'anonymous requests cannot grant access',
    'PUT /v1/users/access',
    { username: 'ben', topic: 'x', permission: 'rw' },
    40101,
    {},
  ),
  rejects(
    'anonymous requests cannot remove grants',
    'DELETE /v1/users/access',
    { username: 'ben', topic: 'x' },
    40101,
    {},
  ),
];

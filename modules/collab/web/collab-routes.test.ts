// The routes over real HTTP: their effects, their rejections, and the visibility of their responses.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildStreamName } from 'millrace/contracts';
import { openRig, until, type PersonResponse, type Person, type Rig } from '../testing/web-rig.ts';
import { aliases, endpoints } from './endpoints.ts';

let rig: Rig;
let zoe: Person;
let alex: Person;
let kim: Person;
before(async () => {
  rig = await openRig();
  zoe = await rig.person('zoe');
  alex = await rig.person('alex');
  kim = await rig.person('kim');
});
after(() => rig[Symbol.asyncDispose]());

interface List<Item = Readonly<Record<string, unknown>>> {
  readonly items: readonly Item[];
  readonly cursor?: string;
}
interface Failed {
  readonly error: { readonly code: string; readonly details: Readonly<Record<string, unknown>> };
}

const statusAndCode = ({ status, body }: PersonResponse<unknown>): unknown[] => [
  status,
  (body as Partial<Failed>).error?.code,
];

test('the routes are exactly the rows of the table, with the error format of the document', async () => {
  const wanted = Object.values(endpoints).map(({ method, path }) => `${method} ${path}`);
  const also = Object.entries(aliases).map(
    ([name, path]) => `${endpoints[name as keyof typeof aliases].method} ${path}`,
  );
  const ours = rig.server.routes.filter(({ tag }) => tag.startsWith('collab:'));
  assert.deepEqual(
    ours.map(({ method, path }) => `${method} ${path}`).toSorted(),
    [...wanted, ...also].toSorted(),
  );
  for (const each of ours)
    assert.deepEqual([each.access, each.errors === undefined], ['use', false]);
});

test('a workspace has members with roles and keeps its last admin', async () => {
  const w = await rig.workspace(zoe, alex);
  const members = `/api/v1/workspaces/${w}/members`;
  const workspace = await zoe.get(`/api/v1/workspaces/${w}`);
  assert.deepEqual(
    [workspace.body['name'], workspace.body['role'], workspace.body['memberCount']],
    ['Mill', 'admin', 2],
  );
  assert.equal((await alex.get(`/api/v1/workspaces/${w}`)).body['role'], 'member');
  assert.deepEqual(
    statusAndCode(await alex.send('PUT', `${members}/${zoe.name}`, { role: 'member' })),
    [403, 'FORBIDDEN'],
  );
  assert.deepEqual(statusAndCode(await zoe.send('DELETE', `${members}/${zoe.name}`)), [
    409,
    'CONFLICT',
  ]);
  const raised = await zoe.send('PUT', `${members}/${alex.name}`, { role: 'admin' });
  assert.deepEqual([raised.status, raised.body['role']], [200, 'admin']);
  assert.equal((await zoe.send('DELETE', `${members}/${zoe.name}`)).status, 204);
  assert.equal((await zoe.get(`/api/v1/workspaces/${w}`)).status, 404);
  const list = await alex.get<List>(members);
  assert.deepEqual(
    list.body.items.map(({ userId }) => userId),
    [alex.name],
  );
  assert.deepEqual(statusAndCode(await alex.send('POST', members, { username: 'missing' })), [
    404,
    'NOT_FOUND',
  ]);
});

test('an invite has a limited number of uses, shows its token once and can be revoked', async () => {
  const w = await rig.workspace(zoe);
  const path = `/api/v1/workspaces/${w}/invites`;
  const invite = async (body: object) =>
    (await zoe.send<{ token: string; inviteId: string }>('POST', path, body)).body;
  const one = await invite({ role: 'admin' });
  const came = await alex.send('POST', `/api/v1/invite/${one.token}`);
  assert.deepEqual([came.status, came.body['role']], [200, 'admin']);
  assert.equal((await alex.send('POST', `/api/v1/invite/${one.token}`)).status, 200);
  assert.deepEqual(statusAndCode(await kim.send('POST', `/api/v1/invite/${one.token}`)), [
    409,
    'CONFLICT',
  ]);
  const list = await zoe.get<List>(path);
  assert.ok(!JSON.stringify(list.body).includes(one.token));
  assert.deepEqual([list.body.items[0]?.['uses'], list.body.items[0]?.['maxUses']], [1, 1]);
  const two = await invite({ maxUses: 5 });
  assert.equal((await zoe.send('DELETE', `${path}/${two.inviteId}`)).status, 204);
  for (const token of [two.token, `${w}~x~${'a'.repeat(43)}`, 'nothing']) {
    assert.deepEqual(statusAndCode(await kim.send('POST', `/api/v1/invite/${token}`)), [
      404,
      'NOT_FOUND',
    ]);
  }
  assert.equal((await kim.get(path)).status, 404);
});

test('a private chat is visible to its participants, a public one to the workspace', async () => {
  const other = await rig.person('zoe', 'acme');
  const w = await rig.workspace(zoe, alex);
  const [open, closed] = [await rig.chat(zoe, w), await rig.chat(zoe, w, { isPublic: false })];
  const seen = async (who: Person): Promise<unknown[]> => {
    const chats = await who.get<List>(`/api/v1/workspaces/${w}/chats`);
    const list = chats.status === 200 ? chats.body.items.map(({ chatId }) => chatId) : chats.status;
    const [a, b] = [
      await who.get(`/api/v1/chats/${open}`),
      await who.get(`/api/v1/chats/${closed}`),
    ];
    return [list, a.status, b.status];
  };
  assert.deepEqual(await seen(zoe), [[closed, open], 200, 200]);
  assert.deepEqual(await seen(alex), [[open], 200, 404]);
  assert.deepEqual(await seen(kim), [404, 404, 404]);
  assert.deepEqual(await seen(other), [404, 404, 404]);
  const participants = `/api/v1/chats/${closed}/participants`;
  assert.equal((await alex.send('POST', participants, { userId: alex.name })).status, 404);
  assert.equal((await zoe.send('POST', participants, { userId: kim.name })).status, 404);
  assert.equal((await zoe.send('POST', participants, { userId: alex.name })).status, 201);
  assert.deepEqual(await seen(alex), [[closed, open], 200, 200]);
  assert.equal((await alex.send('DELETE', `${participants}/${zoe.name}`)).status, 403);
  assert.equal((await alex.send('DELETE', `${participants}/${alex.name}`)).status, 204);
  assert.deepEqual(await seen(alex), [[open], 200, 404]);
  const joined = await alex.send('POST', `/api/v1/chats/${open}/participants`, {
    userId: alex.name,
  });
  assert.deepEqual([joined.status, joined.body['role']], [201, 'member']);
});

test('posting returns the message and its flow, once per key, also under the path of the document', async () => {
  const w = await rig.workspace(zoe, alex);
  const chatId = await rig.chat(zoe, w);
  const path = `/api/v1/chats/${chatId}/messages`;
  const posted = await zoe.send('POST', path, { content: 'Finished\n#Status Done' });
  assert.equal(posted.status, 201);
  const { messageId, timestamp, ...rest } = posted.body;
  assert.deepEqual(rest, { chatId, authorId: zoe.name, content: 'Finished\n#Status Done' });
  assert.ok(typeof messageId === 'string' && typeof timestamp === 'string');
  assert.match(posted.headers.get('x-correlation-id') ?? '', /./);
  assert.equal(posted.headers.get('x-ratelimit-limit'), '60');
  const repeat = () =>
    zoe.send(
      'POST',
      `/api/chats/${chatId}/messages`,
      { content: 'once' },
      {
        'idempotency-key': 'k1',
        'x-correlation-id': 'flow-1',
      },
    );
  const [first, again] = [await repeat(), await repeat()];
  assert.deepEqual([again.status, again.body], [201, first.body]);
  assert.equal(again.headers.get('x-correlation-id'), 'flow-1');
  const list = async () => (await alex.get<List>(`/api/chats/${chatId}/messages`)).body.items;
  await until(async () => (await list()).length === 2);
  assert.deepEqual(
    (await list()).map(({ content }) => content),
    ['once', 'Finished\n#Status Done'],
  );
  const chat = await zoe.send<{ chatId: string }>('POST', `/api/v1/workspaces/${w}/chats`, {
    title: 'Leak',
    type: 'bug',
    initialMessage: 'It drips',
  });
  const flow = chat.headers.get('x-correlation-id');
  const events = await rig.platform.engines.store
    .readStream(buildStreamName('collab', 'chat', 1, 'core', chat.body.chatId))
    .toArray();
  assert.deepEqual([...new Set(events.map(({ correlationId }) => correlationId))], [flow]);
  assert.ok(events.some(({ type }) => type === 'chat.message-posted.v1'));
});

test('messages are paged, searched, edited and deleted', async () => {
  const w = await rig.workspace(zoe, alex, kim);
  const chatId = await rig.chat(zoe, w);
  const path = `/api/v1/chats/${chatId}/messages`;
  const ids: string[] = [];
  for (const content of ['one wheel', 'two wheels', 'Drei Räder', 'four wheels two']) {
    const { body } = await alex.send<{ messageId: string }>('POST', path, { content });
    ids.push(body.messageId);
  }
  await until(async () => (await zoe.get<List>(path)).body.items.length === 4);
  const contents: unknown[] = [];
  let cursor = '';
  do {
    const page: PersonResponse<List> = await zoe.get(`${path}?limit=3&order=asc${cursor}`);
    contents.push(...page.body.items.map(({ content }) => content));
    const next = page.body.cursor;
    cursor = next === undefined ? '' : `&cursor=${encodeURIComponent(next)}`;
  } while (cursor !== '');
  assert.deepEqual(contents, ['one wheel', 'two wheels', 'Drei Räder', 'four wheels two']);
  const found = await zoe.get<List>(`${path}?search=${encodeURIComponent('TWO wheels')}`);
  assert.deepEqual(
    found.body.items.map(({ content }) => content),
    ['four wheels two', 'two wheels'],
  );
  const message = `/api/v1/messages/${ids[0]}`;
  const edit = { content: 'one big wheel' };
  assert.equal((await alex.send('PUT', message, edit)).body['content'], 'one big wheel');
  assert.deepEqual(statusAndCode(await kim.send('PUT', message, edit)), [403, 'FORBIDDEN']);
  assert.equal((await zoe.send('DELETE', message)).status, 204);
  assert.deepEqual(statusAndCode(await alex.send('PUT', message, edit)), [404, 'NOT_FOUND']);
  assert.deepEqual(statusAndCode(await zoe.get(`${path}?cursor=x`)), [400, 'VALIDATION_ERROR']);
});

test('the sixty-first message of a user within a minute is rejected', async () => {
  const fast = await rig.person('fast');
  const w = await rig.workspace(zoe, fast);
  const chatId = await rig.chat(zoe, w);
  const path = `/api/v1/chats/${chatId}/messages`;
  const responses = await Promise.all(
    Array.from({ length: 60 }, (_each, at) => fast.send('POST', path, { content: `m${at}` })),
  );
  assert.ok(responses.every(({ status }) => status === 201));
  const late = await fast.send<Failed>('POST', path, { content: 'late' });
  assert.deepEqual(statusAndCode(late), [429, 'RATE_LIMIT_EXCEEDED']);
  assert.equal(late.headers.get('x-ratelimit-limit'), '60');
  assert.equal(late.headers.get('x-ratelimit-remaining'), '0');
  assert.ok(Number(late.headers.get('retry-after')) > 0);
  assert.ok(Number(late.headers.get('x-ratelimit-reset')) > 0);
  assert.equal((await zoe.send('POST', path, { content: 'hello' })).status, 201);
});

test('the first request registers the user, who can change the profile', async () => {
  const mia = await rig.person('mia');
  const me = await mia.get('/api/v1/users/me');
  assert.deepEqual(me.body, {
    userId: mia.name,
    username: mia.name,
    displayName: null,
    email: null,
    preferences: { email: 'mentions' },
  });
  const changed = await mia.send('PUT', '/api/v1/users/me', {
    displayName: 'Mia M.',
    email: 'mia@example.com',
    preferences: { email: 'all' },
  });
  const after1 = { ...me.body, displayName: 'Mia M.', email: 'mia@example.com' };
  assert.deepEqual(changed.body, { ...after1, preferences: { email: 'all' } });
  const cleared = await mia.send('PUT', '/api/v1/users/me', { email: null });
  assert.deepEqual([cleared.body['email'], cleared.body['displayName']], [null, 'Mia M.']);
  const wrong = await mia.send('PUT', '/api/v1/users/me', { email: 'nowhere' });
  assert.deepEqual(statusAndCode(wrong), [400, 'VALIDATION_ERROR']);
});

test('a user of an identity provider gets its name and address, and a unique user name', async () => {
  await using provided = await openRig({ hasJwt: true });
  const claims = { tenant: 'core', preferred_username: 'Zoë K.', email: 'zoe@example.com' };
  const [first, second] = [
    provided.known({ ...claims, sub: '00u1' }),
    provided.known({ ...claims, sub: 'zoe@example.org' }),
  ];
  const [a, b] = [await first.get('/api/v1/users/me'), await second.get('/api/v1/users/me')];
  assert.deepEqual(
    [a.body['username'], a.body['email'], b.body['username']],
    ['Zo-K.', 'zoe@example.com', 'Zo-K.-2'],
  );
  assert.ok(![a, b].some(({ body }) => String(body['userId']).includes('@')));
  const moved = provided.known({ ...claims, sub: '00u1', email: 'zoe@example.net' });
  const after1 = await moved.get('/api/v1/users/me');
  assert.deepEqual(after1.body, { ...a.body, email: 'zoe@example.net' });
  const other = await provided
    .known({ ...claims, tenant: 'acme', sub: '00u1' })
    .get('/api/v1/users/me');
  assert.equal(other.body['username'], 'Zo-K.');
});

test('all errors have one format', async () => {
  const w = await rig.workspace(zoe);
  const { secret } = await rig.platform.tokens.create({ name: 'all', scopes: ['admin'] });
  const as = async (token: string | undefined, path: string): Promise<PersonResponse<Failed>> => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(rig.server.url + path, { headers });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Failed,
    };
  };
  const responses = [
    await as(undefined, '/api/v1/workspaces'),
    await as('mr_wrong', '/api/v1/workspaces'),
    await as(secret, '/api/v1/workspaces'),
    await as(zoe.token, '/api/v1/workspaces?limit=0'),
    await as(zoe.token, '/api/v1/workspaces/nowhere'),
    await zoe.send<Failed>('POST', '/api/v1/workspaces', { nome: 'x' }),
    await zoe.send<Failed>('POST', '/api/v1/workspaces', { name: '  ' }),
    await zoe.send<Failed>('POST', `/api/v1/workspaces/${w}/chats`, { title: 't', type: 'story' }),
    await zoe.send<Failed>('POST', '/api/v1/chats/c1/messages', { content: '' }),
  ];
  assert.deepEqual(responses.map(statusAndCode), [
    [401, 'UNAUTHORIZED'],
    [401, 'UNAUTHORIZED'],
    [403, 'FORBIDDEN'],
    [400, 'VALIDATION_ERROR'],
    [404, 'NOT_FOUND'],
    [400, 'VALIDATION_ERROR'],
    [400, 'VALIDATION_ERROR'],
    [400, 'VALIDATION_ERROR'],
    [400, 'VALIDATION_ERROR'],
  ]);
  for (const { body } of responses) {
    assert.deepEqual(Object.keys(body.error).toSorted(), ['code', 'details', 'message']);
  }
});

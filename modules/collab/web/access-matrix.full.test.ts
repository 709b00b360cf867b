// Calls every route and every WebSocket message with every role. The expected responses are written here a second time,
// independent of the table that the routes use.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { castOf, makeWorld, roles, type Role, type World } from '../testing/access-world.ts';
import {
  openRig,
  until,
  type PersonResponse,
  type Person,
  type Rig,
  type SocketMessage,
} from '../testing/web-rig.ts';
import { aliases, endpoints, type EndpointName } from './endpoints.ts';

type Expected = 'done' | 401 | 403 | 404;

/** The resource of a request: `open` is a public chat with its message and task, `closed` a private one. */
type Target = 'self' | 'workspace' | 'open' | 'closed' | 'invite' | 'notification';

interface Row {
  /** The allowed roles. Default: all roles that see the target. */
  readonly may?: readonly Role[];
  readonly body?: (role: Role) => object;
  /** The value of `{userId}` in the path. */
  readonly userId?: (role: Role) => string;
}

const inside: readonly Role[] = ['member', 'admin', 'participant', 'owner'];
const known: readonly Role[] = roles.filter((role) => role !== 'anonymous' && role !== 'reader');
const tenantsOwn = known.filter((role) => role !== 'foreigner' && role !== 'intruder');

/** The roles that see a target; all others get 404. */
const seenBy: Readonly<Record<Target, readonly Role[]>> = {
  self: known,
  workspace: inside,
  open: inside,
  closed: ['participant', 'owner'],
  // Everyone in the tenant who has the token.
  invite: tenantsOwn,
  notification: ['participant'],
};

const admins: Row['may'] = ['admin'];
const chatAdmins: Row['may'] = ['owner'];
const participants: Row['may'] = ['participant', 'owner'];
const self = (role: Role): string => role;
const chats: readonly Target[] = ['open', 'closed'];

/** The compiler and the first test check that every route has a row. */
const matrix: Readonly<Record<EndpointName, readonly (Row & { of: readonly Target[] })[]>> = {
  getMe: [{ of: ['self'] }],
  changeMe: [{ of: ['self'], body: () => ({ displayName: 'Me' }) }],
  createWorkspace: [{ of: ['self'], body: () => ({ name: 'Own' }) }],
  listWorkspaces: [{ of: ['self'] }],
  getWorkspace: [{ of: ['workspace'] }],
  listMembers: [{ of: ['workspace'] }],
  addMember: [{ of: ['workspace'], may: admins, body: () => ({ username: 'stranger' }) }],
  changeMemberRole: [
    {
      of: ['workspace'],
      may: admins,
      userId: () => 'member',
      body: () => ({ role: 'admin' }),
    },
  ],
  removeMember: [
    { of: ['workspace'], may: admins, userId: () => 'foreigner' },
    { of: ['workspace'], userId: self },
  ],
  listInvites: [{ of: ['workspace'], may: admins }],
  createInvite: [{ of: ['workspace'], may: admins, body: () => ({}) }],
  revokeInvite: [{ of: ['workspace'], may: admins }],
  useInvite: [{ of: ['invite'] }],
  createChat: [{ of: ['workspace'], body: () => ({ title: 'New' }) }],
  listChats: [{ of: ['workspace'] }],
  getChat: [{ of: chats }],
  listParticipants: [{ of: chats }],
  addParticipant: [
    { of: chats, may: chatAdmins, body: () => ({ userId: 'guest' }) },
    { of: chats, body: (role) => ({ userId: role }) },
    // Users cannot make themselves admins.
    { of: chats, may: chatAdmins, body: (role) => ({ userId: role, role: 'admin' }) },
  ],
  removeParticipant: [
    { of: chats, may: chatAdmins, userId: (role) => (role === 'owner' ? 'participant' : 'owner') },
    { of: chats, may: participants, userId: self },
  ],
  listMessages: [{ of: chats }],
  postMessage: [{ of: chats, body: () => ({ content: 'hello' }) }],
  editMessage: [{ of: chats, may: participants, body: () => ({ content: 'changed' }) }],
  deleteMessage: [{ of: chats, may: participants }],
  listTasks: [{ of: ['workspace'] }],
  getBoard: [{ of: ['workspace'] }],
  getTask: [{ of: chats }],
  watchTask: [{ of: chats }],
  unwatchTask: [{ of: chats }],
  listNotifications: [{ of: ['self'] }],
  readNotification: [{ of: ['notification'] }],
  deleteNotification: [{ of: ['notification'] }],
};

interface Case {
  readonly title: string;
  readonly method: string;
  readonly path: string;
  readonly row: Row;
  readonly target: Target;
  readonly role: Role;
  readonly expected: Expected;
  readonly changes: boolean;
}

function expectedOf(target: Target, role: Role, { may = roles }: Row): Expected {
  if (role === 'anonymous') return 401;
  // Every target gets the same response, so the response reveals nothing.
  if (role === 'reader') return 403;
  if (!seenBy[target].includes(role)) return 404;
  return may.includes(role) ? 'done' : 403;
}

const cases: readonly Case[] = (Object.keys(endpoints) as EndpointName[]).flatMap((name) => {
  const { method, path: own } = endpoints[name];
  const alias = (aliases as Partial<Record<EndpointName, string>>)[name];
  return [own, ...(alias === undefined ? [] : [alias])].flatMap((path) =>
    matrix[name].flatMap((row, at) =>
      row.of.flatMap((target) =>
        roles.map((role) => {
          const expected = expectedOf(target, role, row);
          const changes = expected === 'done' && method !== 'GET';
          const title = `${role}: ${method} ${path} (${at}, ${target})`;
          return { title, method, path, row, target, role, expected, changes };
        }),
      ),
    ),
  );
});

let rig: Rig;
let people: Readonly<Record<Role, Person>>;
let shared: World;
/** Each request that changes something gets a separate world, so that it does not affect other cases. */
const own = new Map<Case, World>();
before(async () => {
  rig = await openRig();
  people = await castOf(rig);
  shared = await makeWorld(rig.platform, 'shared');
  for (const each of cases) {
    if (each.changes) own.set(each, await makeWorld(rig.platform, `own${own.size}`));
  }
  const head = await rig.platform.engines.store.head();
  for (const each of rig.platform.modules.projections) await rig.platform.waitFor(each, head);
});
after(() => rig[Symbol.asyncDispose]());

const none: World = {
  workspace: 'none',
  open: 'none',
  closed: 'none',
  openMessage: 'none',
  closedMessage: 'none',
  notification: 'none',
  invite: 'none',
  inviteToken: `none~none~${'x'.repeat(43)}`,
};

function request({ method, path, row, target, role }: Case, world: World): Promise<PersonResponse> {
  const chat = target === 'closed' ? world.closed : world.open;
  const message = target === 'closed' ? world.closedMessage : world.openMessage;
  const ofChat = path.includes('/messages/{id}') ? message : chat;
  const filled = path
    .replace('{w}', world.workspace)
    .replace('{id}', target === 'notification' ? world.notification : ofChat)
    .replace('{userId}', row.userId?.(role) ?? '')
    .replace('{inviteId}', world.invite)
    .replace('{token}', world.inviteToken);
  return people[role].send(method, filled, row.body?.(role));
}

test('every route has a row in the matrix', () => {
  const rows = new Set(cases.map(({ method, path }) => `${method} ${path}`));
  const served = rig.server.routes
    .filter(({ tag }) => tag.startsWith('collab: '))
    .map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(new Set(served), rows);
});

test('every route responds to every role by the rules, and to strangers with 404', async () => {
  const codes = { 401: 'UNAUTHORIZED', 403: 'FORBIDDEN', 404: 'NOT_FOUND' } as const;
  const faults: string[] = [];
  for (const each of cases) {
    const { status, body } = await request(each, own.get(each) ?? shared);
    const { title, expected } = each;
    if (expected === 'done') {
      if (status >= 300) faults.push(`${title}: ${status} ${JSON.stringify(body)}`);
      continue;
    }
    const { error } = body as { error?: { code?: string } };
    const isRight = status === expected && error?.code === codes[expected];
    if (!isRight || Object.keys(body).length > 1) {
      faults.push(`${title}: ${status} instead of ${expected}, ${JSON.stringify(body)}`);
    }
    if (expected !== 404) continue;
    // The response must equal the response for a resource that never existed, except for the requested id.
    const other = await request(each, none);
    const textOf = (response: unknown): string =>
      JSON.stringify(response).replaceAll(shared.notification, none.notification);
    if (other.status !== 404 || textOf(other.body) !== textOf(body)) {
      faults.push(`${title}: ${textOf(body)}, but ${textOf(other.body)} for a missing resource`);
    }
  }
  assert.deepEqual(faults, []);
  assert.ok(cases.length > 400, 'the matrix has at least as many cases as before');
});

test('lists and board counts contain only visible resources', async () => {
  interface Board {
    readonly columns: readonly { readonly status: string; readonly count: number }[];
  }
  const seen: Record<string, unknown[]> = {};
  for (const role of inside) {
    const of = async <Body>(path: string): Promise<Body> => {
      const fullPath = `/api/v1/workspaces/${shared.workspace}/${path}`;
      const { status, body } = await people[role].get<Body>(fullPath);
      assert.equal(status, 200);
      return body;
    };
    const texts = (await Promise.all(['chats', 'tasks', 'board'].map(of))).map((body) =>
      JSON.stringify(body),
    );
    const { columns } = await of<Board>('board');
    seen[role] = [
      ...texts.map((text) =>
        [shared.open, shared.closed].filter((id) => text.includes(`"${id}"`)).join(' '),
      ),
      columns.reduce((sum, { count }) => sum + count, 0),
    ];
  }
  const both = `${shared.open} ${shared.closed}`;
  assert.deepEqual(seen, {
    member: [shared.open, shared.open, shared.open, 1],
    admin: [shared.open, shared.open, shared.open, 1],
    participant: [both, both, both, 2],
    owner: [both, both, both, 2],
  });
});

test('every role receives only visible messages over WebSocket', async () => {
  const live: readonly (readonly [Target, (world: World) => object])[] = [
    ['workspace', ({ workspace: workspaceId }) => ({ type: 'subscribe.workspace', workspaceId })],
    ['open', ({ open: chatId }) => ({ type: 'subscribe.chat', chatId })],
    ['closed', ({ closed: chatId }) => ({ type: 'subscribe.chat', chatId })],
    ['open', ({ open: chatId }) => ({ type: 'chat.typing', chatId })],
    ['closed', ({ closed: chatId }) => ({ type: 'chat.typing', chatId })],
    [
      'closed',
      ({ closed: chatId }) => ({ type: 'subscribe.chat', chatId, since: '0000000000000000' }),
    ],
  ];
  {
    using screen = people.anonymous.connect();
    await screen.closed();
    assert.deepEqual(screen.received, []);
  }
  {
    using screen = people.reader.connect();
    await screen.receive('ready');
    for (const [, message] of live) screen.send(message(shared));
    const errors = (): SocketMessage[] => screen.received.filter(({ type }) => type === 'error');
    await until(() => errors().length === live.length);
    assert.deepEqual(new Set(errors().map(({ code }) => code)), new Set(['FORBIDDEN']));
    assert.ok(!screen.received.some(({ type }) => type === 'connected'));
  }
  for (const role of known) {
    using screen = people[role].connect();
    await screen.receive('connected');
    for (const [at, [, message]] of live.entries()) {
      screen.send({ ...message(shared), id: `is-${at}` });
      screen.send({ ...message(none), id: `not-${at}` });
    }
    const errorOf = (id: string): SocketMessage | undefined =>
      screen.received.find((message) => message.type === 'error' && message['id'] === id);
    await until(() => errorOf(`not-${live.length - 1}`) !== undefined);
    for (const [at, [target]] of live.entries()) {
      const { id: _id, ...nothing } = errorOf(`not-${at}`) ?? { type: 'none' };
      assert.equal(nothing['code'], 'NOT_FOUND');
      if (seenBy[target].includes(role)) {
        assert.equal(errorOf(`is-${at}`), undefined, `${role} ${at}`);
      } else {
        const { id: _same, ...error } = errorOf(`is-${at}`) ?? { type: 'none' };
        assert.deepEqual(error, nothing, `${role} ${at}`);
      }
    }
    if (!inside.includes(role)) {
      assert.ok(!screen.received.some(({ type }) => /^(subscribed|chat|task)\./.test(type)), role);
    }
  }
});

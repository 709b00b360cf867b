// Every way to publish to a topic checks the rights of the caller for that topic.

import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { notifications } from 'millrace/customers';
import type { Bus } from '../../src/bus/index.ts';
import { allowsScope, tokenScopes, type TokenScope } from '../../src/platform/tokens/scopes.ts';
import { openNtfy, startNtfyServer } from '../../src/server/topics/index.ts';
import { ntfyRouteOf, topicRouteAccess } from '../../src/server/topics/ntfy-route.ts';
import { openApi, until } from '../../src/testing/support/server/api-rig.ts';
import { topicRows } from '../../tools/scope-reference.ts';

interface Publisher {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: (url: string) => string;
}

const text = (): string => 'x';
const json = (): string => JSON.stringify({ topic: 'news', message: 'x' });

/** Requests of the server of topics that publish to the topic `news`. */
const publishers: Readonly<Record<string, Publisher>> = {
  'a message': { path: '/news', body: text },
  'a message by PUT': { method: 'PUT', path: '/news', body: text },
  'an update': { path: '/news/s1', body: text },
  'an update by PUT': { method: 'PUT', path: '/news/s1', body: text },
  'a message in the query': { method: 'GET', path: '/news/publish?message=x' },
  'a sent message': { method: 'GET', path: '/news/send?message=x' },
  'a trigger': { method: 'GET', path: '/news/trigger' },
  JSON: { path: '/', body: json },
  'JSON by PUT': { method: 'PUT', path: '/', body: json },
  'a template': { path: '/news?tpl=yes&message=%7B%7B.a%7D%7D', body: () => '{"a":"x"}' },
  'a scheduled message': { path: '/news', headers: { delay: '1h' }, body: text },
  'an uncached message': { path: '/news', headers: { cache: 'no' }, body: text },
  UnifiedPush: { path: '/news?up=1', body: text },
  'a message with an e-mail': {
    path: '/news',
    headers: { email: 'ada@shop.example' },
    body: text,
  },
  'the Matrix push gateway': {
    path: '/_matrix/push/v1/notify',
    body: (url) => JSON.stringify({ notification: { devices: [{ pushkey: `${url}/news?up=1` }] } }),
  },
  'a deletion': { method: 'DELETE', path: '/news/s1' },
  'a deletion by GET': { method: 'GET', path: '/news/s1/delete' },
  'a mark as read': { method: 'PUT', path: '/news/s1/read' },
  'a cleared message': { method: 'PUT', path: '/news/s1/clear' },
  'a cleared message by GET': { method: 'GET', path: '/news/s1/clear' },
};

const open = { attachments: false, defaultAccess: 'read-write', behindProxy: true } as const;

let addresses = 0;
/** Each request has another address, because requests of one address are limited. */
const fromElsewhere = (token: string | undefined): Record<string, string> => ({
  'x-forwarded-for': `10.0.${(addresses += 1) >> 8}.${addresses & 255}`,
  ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
});

async function published(bus: Bus): Promise<readonly string[]> {
  const subjects = await Promise.all(
    ['gbe.notify.topic.*', 'gbe.notify._scheduled.*'].map((pattern) =>
      Array.fromAsync(bus.read(pattern), ({ subject }) => subject),
    ),
  );
  return subjects.flat();
}

test('every request that publishes to a topic is refused without the right to write it', async () => {
  const kinds = Object.values(publishers).map(
    ({ method = 'POST', path }) => ntfyRouteOf(method, path.split('?', 1)[0] ?? '')?.kind,
  );
  const writing = Object.entries(topicRouteAccess).filter(([, access]) => access === 'append');
  assert.deepEqual(new Set<unknown>(kinds), new Set<unknown>(writing.map(([kind]) => kind)));

  await using opened = new AsyncDisposableStack();
  const mail = { name: 'mail', destinations: { email: async () => undefined } };
  const api = opened.use(await openApi({}, { store: 'memory:' }, [mail]));
  let url = '';
  const access = [{ topic: 'news', permission: 'read-only' as const }];
  const settings = { ...open, access };
  const ntfy = opened.use(await openNtfy(api.platform, { settings, url: () => url }));
  ({ url } = opened.use(await startNtfyServer(ntfy)));
  const bus = await api.platform.engines.bus();
  const statusOf = async (
    { method = 'POST', path, headers, body }: Publisher,
    token: string | undefined,
  ): Promise<number> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...headers, ...fromElsewhere(token) },
      ...(body === undefined ? {} : { body: body(url) }),
    });
    await response.body?.cancel();
    return response.status;
  };
  const refused = {
    'a caller without credentials': undefined,
    'a reader': await api.token('read'),
    'an operator': await api.token('operate'),
    'a worker': await api.token('work'),
    'a bus client': await api.token('bus'),
    'a writer of a tenant': await api.token('append', 'core'),
    'an administrator of a tenant': await api.token('admin', 'core'),
  };
  for (const [name, publisher] of Object.entries(publishers)) {
    for (const [who, token] of Object.entries(refused)) {
      const status = await statusOf(publisher, token);
      assert.ok(status === 401 || status === 403, `${who} sends ${name}: ${status}`);
    }
  }
  assert.deepEqual(await published(bus), []);
  // The requests themselves are valid.
  const writer = await api.token('append');
  for (const [name, publisher] of Object.entries(publishers)) {
    assert.equal(await statusOf(publisher, writer), 200, name);
  }
  const found = new Set(await published(bus));
  assert.deepEqual(found, new Set(['gbe.notify.topic.news', 'gbe.notify._scheduled.news']));
});

test('every topic route rejects each scope that docs/scopes.md does not list for it', async () => {
  await using opened = new AsyncDisposableStack();
  const api = opened.use(await openApi());
  let url = '';
  const settings = open;
  const ntfy = opened.use(await openNtfy(api.platform, { settings, url: () => url }));
  ({ url } = opened.use(await startNtfyServer(ntfy)));
  const bodies: Readonly<Record<string, string>> = {
    '/': json(),
    '/_matrix/push/v1/notify': publishers['the Matrix push gateway']?.body?.(url) ?? '',
  };
  for (const scope of tokenScopes) {
    const token = await api.token(scope);
    for (const [call, access] of topicRows()) {
      const [method = '', path = ''] = call.replaceAll(/[{}]/g, '').split(' ');
      const body = method === 'GET' || method === 'HEAD' ? undefined : bodies[path];
      const init = {
        method,
        headers: fromElsewhere(token),
        ...(body === undefined ? {} : { body }),
      };
      const response = await fetch(`${url}${path}?poll=1`, init);
      await response.body?.cancel();
      const isAllowed = access === 'anonymous' || allowsScope([scope], access as TokenScope);
      // Without users of topics, the administration does not exist for others.
      const refusals = access === 'admin' ? [401, 404] : [401, 403];
      const isRefused = refusals.includes(response.status);
      assert.equal(isRefused, !isAllowed, `${scope}: ${call} ${response.status}`);
    }
  }
});

test('what a tenant publishes through the API reaches no topic of others', async () => {
  await using api = await openApi({}, { store: 'memory:' }, [notifications()]);
  const { platform } = api;
  const token = await api.token('admin', 'core');
  const put = async (path: string, body: object): Promise<number> => {
    const init = {
      method: 'PUT',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    };
    return (await api.ask(path, token, init)).status;
  };
  const customer = '/api/v1/notify/customers/cust_1';
  const subject = 'gbe.notify.topic.news';
  const info = { enabled: true, channels: ['topic'], breaksQuiet: true };
  const preferences = { timeZone: 'UTC', quietHours: [], categories: { info } };
  assert.equal(await put(`${customer}/preferences`, preferences), 200);
  for (const topic of ['../news', 'a.news', subject, '*', '>']) {
    assert.equal(await put(`${customer}/contact`, { topic }), 400, topic);
  }
  assert.equal(await put(`${customer}/contact`, { topic: 'news' }), 200);
  const sent: readonly (readonly [path: string, body: object])[] = [
    [`${customer}/notifications`, { category: 'info', title: 'x' }],
    ['/api/v1/notify/broadcasts', { category: 'announcement', title: 'x' }],
    ['/api/v1/jobs', { type: 'report-gen', payload: { topic: 'news', subject } }],
    [
      '/api/v1/streams/shop.order.v1-core-news/events',
      { events: [{ type: 'order.placed.v1', payload: { topic: 'news', subject } }] },
    ],
    ['/api/v1/commands/account.deposit', { id: 'news', payload: { amount: 14 } }],
  ];
  for (const [path, body] of sent) {
    const { status } = await api.post(path, body, token);
    assert.ok(status < 300, `${path}: ${status}`);
  }
  for (const stream of [subject, 'news']) {
    const path = `/api/v1/streams/${stream}/events`;
    const events = { events: [{ type: 'order.placed.v1', payload: {} }] };
    const { status } = await api.post(path, events, token);
    assert.ok(status === 400 || status === 403, `${path}: ${status}`);
  }
  const bus = await platform.engines.bus();
  await until(async () => (await published(bus)).length > 0);
  assert.deepEqual(await published(bus), ['gbe.notify.topic.core_news']);
});

test('no other code makes the subject of a topic', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const found: string[] = [];
  for await (const file of glob('{src,modules}/**/*.ts', { cwd: root })) {
    if (/\.test\.ts$|\/testing\//.test(file)) continue;
    const code = (await readFile(`${root}${file}`, 'utf8')).replaceAll(
      /^\s*(?:\/\/|\*|\/\*).*$/gm,
      '',
    );
    if (/notify\.(?:topic|_scheduled)\b/.test(code)) found.push(file);
  }
  assert.deepEqual(found.toSorted(), [
    // Publishes to topics of the customer's tenant.
    'modules/customers/customer-bus.ts',
    // Builds and checks names.
    'src/contracts/lint/name-shapes.ts',
    'src/contracts/subjects.ts',
    // Reads the messages of a flow.
    'src/platform/traced-work.ts',
    // The source of an e-mail, which is no subject.
    'src/server/topics/open-ntfy.ts',
    // Called by the server of topics, after the check of the rights.
    'src/topics/scheduled-messages.ts',
    'src/topics/topic-log.ts',
  ]);
});

// Cases for reading, following, files, access, and the information that the server reports about itself.

import assert from 'node:assert/strict';
import { WebSocket } from 'ws';
import {
  lines,
  newTopic,
  poll,
  publish,
  rejectedWith,
  send,
  type CaseServer,
  type Message,
  type NtfyCase,
} from './ntfy-case.ts';
import { benToken } from './ntfy-server-facts.ts';

const caseOf = (title: string, run: (server: CaseServer) => Promise<void>): NtfyCase => ({
  title,
  run,
});

async function three(server: CaseServer): Promise<readonly [string, Message, Message, Message]> {
  const topic = newTopic();
  const first = await publish(server, topic, {
    headers: { Title: 'One', Tags: 'a,b', Priority: '5' },
    body: 'first',
  });
  const second = await publish(server, topic, { headers: { Tags: 'b' }, body: 'second' });
  const third = await publish(server, topic, { body: 'third' });
  return [topic, first, second, third];
}

const filtered = (title: string, query: string, wanted: readonly number[]): NtfyCase =>
  caseOf(title, async (server) => {
    const [topic, ...all] = await three(server);
    assert.deepEqual(
      await poll(server, topic, query),
      wanted.map((at) => all[at]),
    );
  });

/** Reads a stream until it has `count` lines that are not empty. */
async function streamed(
  server: CaseServer,
  path: string,
  count: number,
  act: () => Promise<void>,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly text: string; readonly answer: Response }> {
  const over = new AbortController();
  const answer = await fetch(`${server.url}${path}`, { signal: over.signal, headers });
  let text = '';
  let hasActed = false;
  const decoder = new TextDecoder();
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (!hasActed) {
      hasActed = true;
      await act();
    }
    if (text.split('\n').filter((line) => line !== '').length >= count) break;
  }
  over.abort();
  return { text, answer };
}

export const readCases: readonly NtfyCase[] = [
  caseOf('responds to a poll of an empty topic with an empty body', async (server) => {
    const answer = await send(server, newTopic(), { method: 'GET', path: '/{t}/json?poll=1' });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'application/x-ndjson; charset=utf-8');
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.equal(await answer.text(), '');
  }),
  filtered('polls everything in order', 'since=all', [0, 1, 2]),
  filtered('polls the latest message', 'since=latest', [2]),
  filtered('polls nothing since none', 'since=none', []),
  filtered('polls by a duration', 'since=10m', [0, 1, 2]),
  filtered('polls by x-priority', 'priority=5,4', [0]),
  filtered('treats a missing priority as the default', 'p=default', [1, 2]),
  filtered('filters by a title', 'title=One', [0]),
  filtered('filters by title case-sensitively', 'title=one', []),
  filtered('filters by a message', 'message=second', [1]),
  filtered('filters by all tags', 'tags=b', [0, 1]),
  filtered('filters by several tags', 'tags=a,b', [0]),
  filtered('filters by several parameters', 'tags=b&title=One&priority=max', [0]),
  caseOf('filters by id', async (server) => {
    const [topic, , second] = await three(server);
    assert.deepEqual(await poll(server, topic, `id=${second.id}`), [second]);
  }),
  caseOf('polls messages after an id', async (server) => {
    const [topic, first, second, third] = await three(server);
    assert.deepEqual(await poll(server, topic, `since=${first.id}`), [second, third]);
    assert.deepEqual(await poll(server, topic, `since=${third.id}`), []);
  }),
  caseOf('polls all messages after an unknown id', async (server) => {
    const [topic, ...all] = await three(server);
    assert.deepEqual(await poll(server, topic, 'since=AAAAAAAAAAAA'), all);
  }),
  caseOf('polls since a time, inclusively', async (server) => {
    const [topic, ...all] = await three(server);
    assert.deepEqual(await poll(server, topic, `since=${all[0].time}`), all);
    assert.deepEqual(await poll(server, topic, `since=${all[0].time + 100}`), []);
  }),
  caseOf('accepts parameters as headers', async (server) => {
    const [topic, first] = await three(server);
    const answer = await send(server, topic, {
      method: 'GET',
      path: '/{t}/json',
      headers: { 'X-Poll': '1', 'X-Tags': 'a' },
    });
    assert.deepEqual(lines(await answer.text()), [first]);
  }),
  caseOf('does not poll a message without cache', async (server) => {
    const topic = newTopic();
    await publish(server, topic, { headers: { Cache: 'no' }, body: 'gone' });
    await publish(server, topic, { headers: { 'X-Poll-ID': 'x' } });
    assert.deepEqual(await poll(server, topic), []);
  }),
  caseOf('polls several topics', async (server) => {
    const [a, b] = [newTopic(), newTopic()];
    const first = await publish(server, a, { body: '1' });
    const second = await publish(server, b, { body: '2' });
    assert.deepEqual(await poll(server, `${a},${b}`), [first, second]);
    assert.deepEqual(await poll(server, `${a},${b}`, `since=${first.id}`), [second]);
  }),
  caseOf('polls /raw', async (server) => {
    const [topic] = await three(server);
    const answer = await send(server, topic, { method: 'GET', path: '/{t}/raw?poll=1' });
    assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(await answer.text(), 'first\nsecond\nthird\n');
  }),
  caseOf('polls /sse', async (server) => {
    const topic = newTopic();
    const message = await publish(server, topic, { body: 'x' });
    const answer = await send(server, topic, { method: 'GET', path: '/{t}/sse?poll=1' });
    assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(await answer.text(), `data: ${JSON.stringify(message)}\n\n`);
  }),
  rejectedWith('rejects an invalid since', { method: 'GET', path: '/{t}/json?since=2d' }, 40008),
  rejectedWith(
    'rejects a filter by an invalid priority',
    { method: 'GET', path: '/{t}/json?poll=1&priority=9' },
    40007,
  ),
  rejectedWith(
    'rejects reading a reserved topic',
    { method: 'GET', path: '/login/json?poll=1' },
    40010,
  ),
  rejectedWith('rejects /ws without an upgrade', { method: 'GET', path: '/{t}/ws' }, 40016),
  rejectedWith('rejects POST to a path of three parts', { path: '/{t}/a/json' }, 40401),
];

export const followCases: readonly NtfyCase[] = [
  caseOf('opens a stream and sends new messages', async (server) => {
    const topic = newTopic();
    let sent: Message | undefined;
    const { text } = await streamed(server, `/${topic}/json`, 2, async () => {
      sent = await publish(server, topic, { body: 'live' });
    });
    const [open, message] = lines(text);
    assert.deepEqual(Object.keys(open ?? {}), ['id', 'time', 'event', 'topic']);
    assert.deepEqual([open?.event, open?.topic], ['open', topic]);
    assert.deepEqual(message, sent);
  }),
  caseOf('sends stored messages, then new ones', async (server) => {
    const [topic, first, ...rest] = await three(server);
    let sent: Message | undefined;
    const { text } = await streamed(server, `/${topic}/json?since=${first.id}`, 4, async () => {
      sent = await publish(server, topic, { body: 'live' });
    });
    assert.deepEqual(lines(text).slice(1), [...rest, sent]);
  }),
  caseOf('streams several topics', async (server) => {
    const [a, b] = [newTopic(), newTopic()];
    const { text } = await streamed(server, `/${a},${b}/json`, 3, async () => {
      await publish(server, a, { body: '1' });
      await publish(server, b, { body: '2' });
    });
    const [open, ...messages] = lines(text);
    assert.equal(open?.topic, `${a},${b}`);
    assert.deepEqual(new Set(messages.map(({ message }) => message)), new Set(['1', '2']));
  }),
  caseOf('filters a stream', async (server) => {
    const topic = newTopic();
    const { text } = await streamed(server, `/${topic}/json?tags=x`, 2, async () => {
      await publish(server, topic, { body: 'no' });
      await publish(server, topic, { headers: { Tags: 'x,y' }, body: 'yes' });
    });
    assert.deepEqual(
      lines(text)
        .slice(1)
        .map(({ message }) => message),
      ['yes'],
    );
  }),
  caseOf('streams a message without cache', async (server) => {
    const topic = newTopic();
    const { text } = await streamed(server, `/${topic}/json`, 2, async () => {
      await publish(server, topic, { headers: { Cache: 'no' }, body: 'now only' });
    });
    assert.equal(lines(text)[1]?.message, 'now only');
  }),
  caseOf('streams poll requests regardless of filters', async (server) => {
    const topic = newTopic();
    const { text } = await streamed(server, `/${topic}/json?title=x`, 2, async () => {
      await publish(server, topic, { headers: { 'X-Poll-ID': 'abc' } });
    });
    assert.equal(lines(text)[1]?.event, 'poll_request');
  }),
  caseOf('streams /sse', async (server) => {
    const topic = newTopic();
    let sent: Message | undefined;
    const { text, answer } = await streamed(server, `/${topic}/sse`, 3, async () => {
      sent = await publish(server, topic, { body: 'live' });
    });
    assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.match(
      text,
      /^event: open\ndata: \{"id":"[A-Za-z0-9]{12}","time":\d+,"event":"open","topic":"[a-z0-9]+"\}\n\ndata: /,
    );
    assert.ok(text.endsWith(`data: ${JSON.stringify(sent)}\n\n`));
  }),
  caseOf('streams /raw', async (server) => {
    const topic = newTopic();
    const { text } = await streamed(server, `/${topic}/raw`, 1, async () => {
      await publish(server, topic, { body: 'a\nb' });
    });
    assert.equal(text, '\na b\n');
  }),
  caseOf('streams /ws', async (server) => {
    const topic = newTopic();
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/${topic}/ws`, {
      origin: 'https://elsewhere.example',
    });
    const heard: Message[] = [];
    const message = await new Promise<Message>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('message', (data: Buffer) => {
        const each = JSON.parse(data.toString()) as Message;
        heard.push(each);
        if (each.event === 'open') publish(server, topic, { body: 'live' }).catch(reject);
        else resolve(each);
      });
    });
    socket.terminate();
    assert.deepEqual([heard[0]?.event, heard[0]?.topic], ['open', topic]);
    assert.deepEqual([message.message, message.sequence_id], ['live', message.id]);
  }),
  caseOf('sends stored messages over /ws', async (server) => {
    const [topic, first, second, third] = await three(server);
    const socket = new WebSocket(
      `${server.url.replace('http', 'ws')}/${topic}/ws?since=${first.id}`,
    );
    const heard: string[] = [];
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('message', (data: Buffer) => {
        heard.push((JSON.parse(data.toString()) as Message).id);
        if (heard.length === 3) resolve();
      });
    });
    socket.terminate();
    assert.deepEqual(heard.slice(1), [second.id, third.id]);
  }),
  caseOf('rejects /ws with a bare status', async (server) => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/${newTopic()}/ws?since=bad`);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      socket.on('unexpected-response', (_, answer) => resolve(answer.statusCode));
      socket.on('open', () => reject(new Error('the WebSocket was opened')));
      socket.on('error', () => undefined);
    });
    socket.terminate();
    assert.equal(status, 400);
  }),
];

const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
const inQuery = (value: string): string => Buffer.from(value).toString('base64url');
const ben = { Authorization: basic('ben', 'benpass') };

const allowed = (
  title: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): NtfyCase =>
  caseOf(title, async (server) => {
    const answer = await send(server, newTopic(), {
      method,
      path,
      headers,
      ...(method === 'GET' ? {} : { body: 'x' }),
    });
    assert.equal(answer.status, 200, await answer.text());
  });

export const accessCases: readonly NtfyCase[] = [
  rejectedWith(
    'rejects a wrong password, also for an open topic',
    { headers: { Authorization: basic('ben', 'no') }, body: 'x' },
    40101,
  ),
  rejectedWith(
    'rejects an unknown user',
    { headers: { Authorization: basic('nobody', 'x') }, body: 'x' },
    40101,
  ),
  rejectedWith(
    'rejects an unknown token',
    { headers: { Authorization: 'Bearer tk_nonononononononononononononono' }, body: 'x' },
    40101,
  ),
  allowed('ignores other authentication schemes', 'POST', '/{t}', { Authorization: 'vapid t=x' }),
  allowed('accepts a user', 'POST', '/{t}', ben),
  rejectedWith('rejects writing to a denied topic', { path: '/closed-{t}', body: 'x' }, 40301),
  rejectedWith(
    'rejects reading a denied topic',
    { method: 'GET', path: '/closed-{t}/json?poll=1' },
    40301,
  ),
  rejectedWith(
    'rejects several topics if one is denied',
    { method: 'GET', path: '/{t},closed-{t}/json?poll=1' },
    40301,
  ),
  rejectedWith(
    'rejects JSON for a denied topic',
    { path: '/', body: '{"topic":"closed-json"}' },
    40301,
  ),
  rejectedWith(
    'rejects deleting in a denied topic',
    { method: 'DELETE', path: '/closed-{t}/s1' },
    40301,
  ),
  rejectedWith(
    'rejects /auth of a denied topic',
    { method: 'GET', path: '/closed-{t}/auth' },
    40301,
  ),
  rejectedWith(
    'rejects /ws of a denied topic before it requires an upgrade',
    { method: 'GET', path: '/closed-{t}/ws' },
    40301,
  ),
  allowed('confirms read access', 'GET', '/{t}/auth'),
  allowed('allows reading a read-only topic', 'GET', '/news-{t}/json?poll=1'),
  rejectedWith('rejects writing to a read-only topic', { path: '/news-{t}', body: 'x' }, 40301),
  allowed('allows writing to a write-only topic', 'POST', '/drop-{t}'),
  rejectedWith(
    'rejects reading a write-only topic',
    { method: 'GET', path: '/drop-{t}/json?poll=1' },
    40301,
  ),
  allowed('prefers the rule of the user to the rule for all users', 'POST', '/closed-ben-{t}', ben),
  rejectedWith(
    "keeps the user to the user's rule",
    { path: '/closed-news-{t}', headers: ben, body: 'x' },
    40301,
  ),
  allowed('allows administrators everything', 'POST', '/closed-{t}', {
    Authorization: basic('root', 'rootpass'),
  }),
  allowed('accepts a token', 'POST', '/closed-ben-{t}', { Authorization: `Bearer ${benToken}` }),
  allowed('accepts a token as a password without a user name', 'POST', '/closed-ben-{t}', {
    Authorization: basic('', benToken),
  }),
  allowed(
    'accepts credentials in the query',
    'GET',
    `/closed-ben-{t}/json?poll=1&auth=${inQuery(basic('ben', 'benpass'))}`,
  ),
  allowed(
    'accepts a token in the query',
    'GET',
    `/closed-ben-{t}/json?poll=1&authorization=${inQuery(`Bearer ${benToken}`)}`,
  ),
  rejectedWith(
    'rejects wrong credentials in the query',
    { method: 'GET', path: `/{t}/json?poll=1&auth=${inQuery(basic('ben', 'no'))}` },
    40101,
  ),
];

export const fileCases: readonly NtfyCase[] = [
  caseOf('serves a file to every client that has its URL', async (server) => {
    const { attachment } = await publish(server, newTopic(), {
      method: 'PUT',
      headers: { Filename: 'über.txt' },
      body: 'the file',
    });
    const answer = await fetch(attachment?.url ?? '');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-length'), '8');
    assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.match(answer.headers.get('content-disposition') ?? '', /^attachment; filename="/);
    assert.equal(await answer.text(), 'the file');
  }),
  caseOf('reports the size of a file', async (server) => {
    const { attachment } = await publish(server, newTopic(), {
      headers: { f: 'a' },
      body: 'the file',
    });
    const answer = await fetch(attachment?.url ?? '', { method: 'HEAD' });
    assert.deepEqual([answer.status, answer.headers.get('content-length')], [200, '8']);
  }),
  caseOf('never serves an HTML file as HTML', async (server) => {
    const { attachment } = await publish(server, newTopic(), {
      headers: { f: 'a.html' },
      body: '<!DOCTYPE html><html><body>x</body></html>',
    });
    const answer = await fetch(attachment?.url ?? '');
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
    await answer.text();
  }),
  caseOf('accepts large files', async (server) => {
    const body = new Uint8Array(300_000).fill(7);
    const { attachment } = await publish(server, newTopic(), { body });
    assert.equal(attachment?.size, 300_000);
    const answer = await fetch(attachment.url);
    assert.deepEqual(new Uint8Array(await answer.arrayBuffer()), body);
  }),
  rejectedWith('rejects files above the limit', { body: new Uint8Array(2_000_000) }, 41301),
  rejectedWith(
    'responds with 404 to a request for an unknown file',
    { method: 'GET', path: '/file/AAAAAAAAAAAA.txt' },
    40401,
  ),
];

const reports = (title: string, method: string, path: string, expected: unknown): NtfyCase =>
  caseOf(title, async (server) => {
    const answer = await send(server, newTopic(), { method, path });
    assert.equal(answer.status, 200);
    assert.deepEqual(await answer.json(), expected);
  });

export const factCases: readonly NtfyCase[] = [
  reports('reports its health', 'GET', '/v1/health', { healthy: true }),
  reports('reports support for UnifiedPush', 'GET', '/{t}?up=1', { unifiedpush: { version: 1 } }),
  reports('reports that it is a Matrix gateway', 'GET', '/_matrix/push/v1/notify', {
    unifiedpush: { gateway: 'matrix' },
  }),
  caseOf('reports its statistics', async (server) => {
    const answer = await send(server, '', { method: 'GET', path: '/v1/stats' });
    assert.deepEqual(Object.keys((await answer.json()) as object), ['messages', 'messages_rate']);
  }),
  caseOf('reports its configuration', async (server) => {
    const answer = await send(server, '', { method: 'GET', path: '/v1/config' });
    assert.equal(answer.headers.get('cache-control'), 'no-cache');
    const config = (await answer.json()) as Readonly<Record<string, unknown>>;
    assert.deepEqual(
      [config['base_url'], config['enable_payments'], config['enable_web_push']],
      ['', false, false],
    );
    assert.ok((config['disallowed_topics'] as readonly string[]).includes('docs'));
    assert.match(String(config['config_hash']), /^[0-9a-f]{64}$/);
  }),
  caseOf('reports its configuration as a script', async (server) => {
    const answer = await send(server, '', { method: 'GET', path: '/config.js' });
    assert.equal(answer.headers.get('content-type'), 'text/javascript');
    assert.match(
      await answer.text(),
      /^\/\/ Generated server configuration\nvar config = \{\n {2}"base_url": "",\n/,
    );
  }),
  caseOf('reports an anonymous account', async (server) => {
    const answer = await send(server, '', { method: 'GET', path: '/v1/account' });
    const account = (await answer.json()) as {
      readonly username: string;
      readonly role: string;
      readonly limits: object;
      readonly stats: object;
    };
    assert.deepEqual([account.username, account.role], ['*', 'anonymous']);
    assert.deepEqual(Object.keys(account.limits), [
      'basis',
      'messages',
      'messages_expiry_duration',
      'emails',
      'calls',
      'reservations',
      'attachment_total_size',
      'attachment_file_size',
      'attachment_expiry_duration',
      'attachment_bandwidth',
    ]);
    assert.deepEqual(Object.keys(account.stats), [
      'messages',
      'messages_remaining',
      'emails',
      'emails_remaining',
      'calls',
      'calls_remaining',
      'reservations',
      'reservations_remaining',
      'attachment_total_size',
      'attachment_total_size_remaining',
    ]);
  }),
  caseOf('reports the account of a user', async (server) => {
    const answer = await send(server, '', { method: 'GET', path: '/v1/account', headers: ben });
    const account = (await answer.json()) as { readonly username: string; readonly role: string };
    assert.deepEqual([account.username, account.role], ['ben', 'user']);
  }),
  caseOf('allows requests from every origin', async (server) => {
    const answer = await send(server, newTopic(), { method: 'OPTIONS' });
    assert.equal(answer.status, 200);
    assert.equal(
      answer.headers.get('access-control-allow-methods'),
      'GET, PUT, POST, PATCH, DELETE',
    );
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.equal(answer.headers.get('access-control-allow-headers'), '*');
  }),
  rejectedWith(
    'reserves administration for administrators',
    { method: 'GET', path: '/v1/users' },
    40101,
  ),
  rejectedWith(
    'reserves its version for administrators',
    { method: 'GET', path: '/v1/version' },
    40101,
  ),
  rejectedWith('does not support web push', { path: '/v1/webpush', body: '{}' }, 40401),
  rejectedWith(
    'does not serve a manifest',
    { method: 'GET', path: '/manifest.webmanifest' },
    40401,
  ),
  rejectedWith('does not support payments', { method: 'GET', path: '/v1/tiers' }, 40401),
  rejectedWith(
    'responds with 404 to other paths',
    { method: 'GET', path: '/v1/nothing/here' },
    40401,
  ),
  caseOf('accepts pushes of Matrix', async (server) => {
    const topic = `up${newTopic()}`;
    const body = JSON.stringify({
      notification: { devices: [{ pushkey: `${server.url}/${topic}?up=1` }] },
    });
    const answer = await send(server, '', { path: '/_matrix/push/v1/notify', body });
    assert.deepEqual(await answer.json(), { rejected: [] });
    assert.deepEqual(
      (await poll(server, topic)).map(({ message }) => message),
      [body],
    );
  }),
  caseOf('rejects keys of other servers for Matrix', async (server) => {
    const pushkey = 'https://elsewhere.example/upABC?up=1';
    const body = JSON.stringify({ notification: { devices: [{ pushkey }] } });
    const answer = await send(server, '', { path: '/_matrix/push/v1/notify', body });
    assert.deepEqual([answer.status, await answer.json()], [200, { rejected: [pushkey] }]);
  }),
  rejectedWith(
    'rejects an invalid Matrix request',
    { path: '/_matrix/push/v1/notify', body: '{"notification":{}}' },
    40019,
  ),
];

const throughJson = (title: string, body: object, check: (message: Message) => void): NtfyCase =>
  caseOf(title, async (server) => {
    const topic = newTopic();
    const message = await publish(server, topic, {
      path: '/',
      headers: { 'X-Tags': 'by-header' },
      body: JSON.stringify({ topic, ...body }),
    });
    assert.equal(message.topic, topic);
    check(message);
    if (message.expires !== undefined && message.time * 1_000 <= Date.now())
      assert.deepEqual(await poll(server, topic), [message]);
  });
const partOf = (message: Message, ...names: readonly string[]): unknown =>
  names.map((name) => (message as unknown as Readonly<Record<string, unknown>>)[name]);

export const jsonTakenCases: readonly NtfyCase[] = [
  throughJson(
    'accepts all parameters as JSON',
    {
      message: 'm',
      title: 'ä',
      tags: ['a', 'b'],
      priority: 4,
      click: 'https://e.x',
      icon: 'https://e.x/i',
      markdown: true,
      sequence_id: 's',
    },
    (message) =>
      assert.deepEqual(
        partOf(
          message,
          'message',
          'title',
          'tags',
          'priority',
          'click',
          'icon',
          'content_type',
          'sequence_id',
        ),
        ['m', 'ä', ['a', 'b'], 4, 'https://e.x', 'https://e.x/i', 'text/markdown', 's'],
      ),
  ),
  throughJson('uses headers for fields that the JSON lacks', { message: 'm' }, (message) =>
    assert.deepEqual(partOf(message, 'tags'), [['by-header']]),
  ),
  throughJson(
    'accepts null and unknown keys in JSON',
    { message: null, title: null, tags: null, priority: null, whatever: 1 },
    (message) => assert.deepEqual(partOf(message, 'message', 'title'), ['triggered', undefined]),
  ),
  throughJson('accepts a delay in JSON', { message: 'm', delay: '1h' }, (message) =>
    assert.ok(message.time > Date.now() / 1_000 + 3_500),
  ),
  throughJson('accepts cache as a string in JSON', { message: 'm', cache: 'no' }, (message) =>
    assert.equal(message.expires, undefined),
  ),
  throughJson(
    'accepts the URL of a file in JSON',
    { attach: 'https://e.x/a.png', filename: 'b.png' },
    (message) =>
      assert.deepEqual(partOf(message, 'message', 'attachment'), [
        'triggered',
        { name: 'b.png', url: 'https://e.x/a.png' },
      ]),
  ),
  throughJson(
    'accepts actions in JSON',
    { message: 'm', actions: [{ action: 'http', label: 'Go', url: 'https://e.x', clear: true }] },
    (message) =>
      assert.deepEqual(
        message.actions?.map((each) => ({ ...each, id: '' })),
        [{ id: '', action: 'http', label: 'Go', clear: true, url: 'https://e.x' }],
      ),
  ),
];

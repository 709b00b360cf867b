// Random requests never cause a 500, and never stop the server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../../testing/property-runs.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { startOurNtfy } from '../../testing/support/topics/our-ntfy.ts';
import { codePoint } from '../../testing/support/code-point.ts';

const names = [
  'x-title',
  'priority',
  'tags',
  'delay',
  'actions',
  'attach',
  'icon',
  'filename',
  'template',
  'message',
  'email',
  'x-sequence-id',
  'since',
  'poll',
  'x-poll-id',
  'up',
  'cache',
  'markdown',
  'authorization',
  'content-type',
  'content-encoding',
  'range',
];
const text = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 40 }),
  fc.constantFrom(
    'yes',
    '1',
    '[',
    '[{"action":"view"}]',
    '{{',
    '{{range .}}{{end}}',
    '{{.a.b}}',
    'view, "',
    '=?utf-8?b?!?=',
    '=?utf-8?q?=ZZ?=',
    'tk_',
    'Basic !!',
    'Bearer ',
    'tomorrow',
    '99999999999999999999',
    '-1s',
    'all',
    'https://',
    'http://[',
    'github',
    '__proto__',
    'constructor',
  ),
);
const header = text.map((value) =>
  Buffer.from(value.replace(/[\r\n\0]/g, ' '), 'utf8')
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '?'),
);
const segment = fc.oneof(
  fc.constantFrom(
    't1',
    't1,t2',
    'json',
    'sse',
    'raw',
    'ws',
    'auth',
    'publish',
    'clear',
    'delete',
    'v1',
    'file',
    'account',
    'users',
    '_matrix',
    'push',
    'notify',
    'AAAAAAAAAAAA',
    '..',
    '%',
    '%2e',
    '%zz',
    '',
  ),
  text.map(encodeURIComponent),
);
const request = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
  path: fc.array(segment, { maxLength: 4 }),
  query: fc.dictionary(fc.constantFrom(...names), text, { maxKeys: 3 }),
  headers: fc.dictionary(fc.constantFrom(...names), header, { maxKeys: 4 }),
  body: fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json().map((json) => Buffer.from(json)),
    fc.constantFrom(
      Buffer.from('{"topic":"t1","actions":[null]}'),
      Buffer.from('{"topic":"t1","tags":[null],"priority":1e99}'),
      Buffer.alloc(9_000, 97),
    ),
  ),
});

test('no request makes the server fail', async () => {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  const server = opened.use(
    await startOurNtfy({
      folder,
      limits: { authFailuresBurst: 1_000_000, subscriptionsMax: 100_000 },
    }),
  );
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, headers, body }) => {
      const search = new URLSearchParams({ ...query, poll: '1' });
      const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
      const answer = await fetch(`${server.url}/${path.join('/')}?${search.toString()}`, {
        method,
        // A random `poll` header would turn the request into a stream without an end.
        headers: { ...headers, 'x-poll': '1' },
        redirect: 'manual',
        ...(hasBody ? { body: Uint8Array.from(body) } : {}),
      });
      await answer.arrayBuffer();
      assert.ok(answer.status < 500, `${answer.status}`);
    }),
    { numRuns: propertyRuns(1_500) },
  );
  assert.equal((await fetch(`${server.url}/v1/health`)).status, 200);
});

// The events about the operation of a deployment, read from Redis with a raw client under the keys of the subjects
// document.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { Redis } from 'ioredis';
import { eventually } from '../src/testing/assertions.ts';
import { startRedis } from '../src/testing/servers/redis-server.ts';
import { workFolder } from './cli-store-terminal.ts';
import { startProduct } from './start-product.ts';

const server = await startRedis();
after(() => server[Symbol.asyncDispose]());
const source = (path: string): string => new URL(`../src/${path}`, import.meta.url).href;

const config = (setting: string): string => `
import { defineConfig, defineModule, route } from '${source('platform/index.ts')}';

const broken = route({
  method: 'GET', path: '/broken/{name}', summary: 'Fails', tag: 'test', access: 'anonymous',
  responses: { 200: { description: 'Never' } },
  handle: async () => { throw new Error('secret of lovelace@example.com'); },
});
export default defineConfig({
  engines: { bus: '${server.url}' },
  modules: [defineModule({ name: 'test', web: () => ({ routes: [broken] }) })],
  ${setting}
});
`;

type Payload = Readonly<Record<string, unknown>>;

test('a raw Redis client reads errors, sign-ins, admin actions and processes, without personal data', async (t) => {
  await using folder = await workFolder();
  const redis = new Redis(server.url);
  after(() => redis.disconnect());
  const keys = (): Promise<string[]> => redis.keys('gbe:events:*');
  const entries = async (key: string): Promise<readonly string[]> =>
    (await redis.xrange(key, '-', '+')).map(([, fields]) => fields.join(' '));
  const payloads = async (key: string): Promise<readonly Payload[]> =>
    (await entries(key)).map((text) => {
      const { payload } = JSON.parse(text.slice(text.indexOf('{'))) as {
        readonly payload: Payload;
      };
      return payload;
    });
  const run = async (setting: string): Promise<string> => {
    await writeFile(`${folder.path}/millrace.config.ts`, config(setting));
    const product = await startProduct(folder.path, ['start', '--no-kurrent', '--no-ntfy']);
    t.after(() => product.signal('SIGKILL'));
    const { base, token = '' } = product;
    const call = (
      method: string,
      path: string,
      headers: Readonly<Record<string, string>>,
      body?: object,
    ) =>
      fetch(`${base}${path}`, {
        method,
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      });
    assert.equal((await call('GET', '/broken/lovelace@example.com', {})).status, 500);
    assert.equal(
      (await call('GET', '/api/v1/events', { authorization: 'Bearer wrong' })).status,
      401,
    );
    const own = { origin: base, 'x-millrace-app': 'console' };
    const signedIn = await call('POST', '/console/session', own, { token });
    assert.equal(signedIn.status, 204);
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    assert.equal((await call('DELETE', '/console/session', { ...own, cookie })).status, 204);
    const authorization = `Bearer ${token}`;
    const created = await call(
      'POST',
      '/admin/tokens',
      { authorization },
      { name: setting === '' ? 'eve' : 'lovelace', scopes: ['read'] },
    );
    assert.equal(created.status, 201);
    if (setting !== '') {
      await eventually(async () => (await payloads('gbe:events:audit:change')).length === 6);
    }
    assert.equal(await product.stop('SIGTERM'), 0);
    return token;
  };

  await run('');
  assert.deepEqual(await keys(), []);

  const token = await run('operationsEvents: true,');
  const statuses = (await payloads('gbe:events:system:health')).map(({ status }) => status);
  assert.deepEqual(statuses, ['started', 'stopping']);
  const [failed] = await payloads('gbe:events:api:error');
  assert.deepEqual([failed?.['route'], failed?.['status']], ['/broken/{name}', 500]);
  const [error] = await payloads('gbe:events:system:error');
  assert.deepEqual(
    [error?.['message'], error?.['requestId']],
    ['request failed', failed?.['requestId']],
  );
  const [rejected] = await payloads('gbe:events:auth:failure');
  assert.deepEqual([rejected?.['route'], rejected?.['status']], ['/api/v1/events', 401]);
  assert.equal((await payloads('gbe:events:auth:login')).length, 1);
  assert.equal((await payloads('gbe:events:auth:logout')).length, 1);
  const changes = await payloads('gbe:events:audit:change');
  assert.deepEqual(
    changes.map(({ outcome, action }) => [outcome, action].filter(Boolean).join(' ')),
    ['console.sign-in', 'console.sign-out', 'token.create'].flatMap((action) => [
      `requested ${action}`,
      'done',
    ]),
  );
  assert.equal(changes[4]?.['auditId'], changes[5]?.['auditId']);

  const all = (await Promise.all((await keys()).map(entries))).flat().join('\n');
  for (const secret of ['lovelace', '127.0.0.1', 'secret', token])
    assert.ok(!all.includes(secret), secret);
});

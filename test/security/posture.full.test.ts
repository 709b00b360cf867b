// What a caller without credentials can reach, and which files other users can read, for each way to run the product.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { throwawayCertificate } from '../../src/testing/support/throwaway-certificate.ts';
import { runMillrace, workFolder } from '../cli-store-terminal.ts';
import { classifiedFile } from './erasure-classified.ts';

const ways = ['loopback', 'behind a proxy', 'public host'] as const;
type Way = (typeof ways)[number];

interface Row {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The status for each way, in the order of `ways`. */
  readonly expected: readonly [number, number, number];
}

const evil = { origin: 'https://evil.example' };
const image = { 'sec-fetch-site': 'cross-site' };
const table: readonly Row[] = [
  { name: 'publish', method: 'POST', path: '/alerts', expected: [200, 403, 403] },
  { name: 'publish by GET', path: '/alerts/publish?message=x', expected: [200, 403, 403] },
  {
    name: 'upload',
    method: 'PUT',
    path: '/alerts',
    headers: { filename: 'a.txt' },
    expected: [200, 403, 403],
  },
  { name: 'read', path: '/alerts/json?poll=1', expected: [200, 403, 403] },
  {
    name: 'publish from a foreign page',
    method: 'POST',
    path: '/alerts',
    headers: evil,
    expected: [403, 403, 403],
  },
  {
    name: 'publish by an image of a foreign page',
    path: '/alerts/publish?message=x',
    headers: image,
    expected: [403, 403, 403],
  },
  { name: 'users of topics', path: '/v1/users', expected: [404, 404, 404] },
  { name: 'health', path: '/health/live', expected: [200, 200, 200] },
  { name: 'reference', path: '/openapi.json', expected: [200, 200, 200] },
  {
    name: 'a name that resolves to this machine',
    path: '/health/live',
    headers: { host: 'evil.example' },
    expected: [421, 421, 200],
  },
  {
    name: 'the configured name',
    path: '/health/live',
    headers: { host: 'push.shop.example' },
    expected: [421, 200, 200],
  },
  { name: 'events', path: '/api/v1/events', expected: [401, 401, 401] },
  { name: 'tokens', path: '/admin/tokens', expected: [401, 401, 401] },
  { name: 'metrics', path: '/metrics', expected: [401, 401, 401] },
];

const settings: Readonly<Record<Way, object>> = {
  loopback: {},
  'behind a proxy': { notify: { behindProxy: true, baseUrl: 'https://push.shop.example' } },
  'public host': {},
};
const listeners: Readonly<Record<Way, readonly string[]>> = {
  loopback: ['127.0.0.1', '127.0.0.1'],
  'behind a proxy': ['127.0.0.1', '127.0.0.1'],
  'public host': ['0.0.0.0', '0.0.0.0'],
};

test('callers without credentials reach what the table says, and files belong to their owner', async () => {
  using tls = throwawayCertificate();
  await using folder = await workFolder();
  const file = (name: string): string => join(folder.path, name);
  await writeFile(file('cert.pem'), tls.cert);
  await writeFile(file('key.pem'), tls.key);
  const secure = ['--host', '0.0.0.0', '--kurrent-auth', 'tokens'];
  const certificate = ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'];
  const own = file('.millrace');
  for (const [column, way] of ways.entries()) {
    // Files of an older version.
    for (const { path } of await modesIn(own)) {
      if (path === own || path.includes('.db')) await chmod(path, path === own ? 0o755 : 0o644);
    }
    const config = `${way.replaceAll(' ', '-')}.config.mjs`;
    await writeFile(file(config), `export default ${JSON.stringify(settings[way])};`);
    const stopping = new AbortController();
    const ready = Promise.withResolvers<string>();
    const more = way === 'public host' ? [...secure, ...certificate] : [];
    const args = ['--port', '0', '--kurrent-port', '0', '--config', config, '--json', ...more];
    const ended = runMillrace(['start', ...args], {
      cwd: folder.path,
      env: { MILLRACE_LOG_LEVEL: 'error' },
      signal: stopping.signal,
      onStdout: ready.resolve,
    });
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => {
      stopping.abort();
      assert.equal((await ended).code, 0);
    });
    const said = await Promise.race([ready.promise, ended]);
    if (typeof said !== 'string') assert.fail(said.stderr);
    const { http, adminTokenFile } = JSON.parse(said) as Readonly<
      Record<'http' | 'adminTokenFile', string>
    >;
    // The output may be in a journal that other users read.
    assert.ok(!said.includes((await readFile(adminTokenFile, 'utf8')).trim()), way);
    assert.deepEqual(await listeningAddresses(), listeners[way], way);
    for (const row of table) {
      const status = await ask(http.replace('0.0.0.0', 'localhost'), row, tls.authorityFile);
      assert.equal(status, row.expected[column], `${row.name}, ${way}`);
    }
    const modes = await modesIn(own);
    assert.ok(modes.some(({ path }) => path.endsWith('events.db-wal')));
    for (const path of modes
      .map((each) => relative(own, each.path))
      .filter((name) => name !== '')) {
      assert.ok(classifiedFile(path), `tools/erasure-table.ts does not say how ${path} is erased`);
    }
    assert.deepEqual(
      modes.filter(({ mode }) => (mode & 0o077) !== 0),
      [],
      way,
    );
  }
});

async function ask(base: string, row: Row, authorityFile: string): Promise<number | undefined> {
  const { path, method = 'GET', headers = {} } = row;
  const ca = await readFile(authorityFile);
  const send: typeof httpsRequest = base.startsWith('https') ? httpsRequest : httpRequest;
  const request = send(`${base}${path}`, {
    method,
    headers,
    ca,
    agent: false,
    servername: 'localhost',
  });
  request.end(method === 'GET' ? undefined : 'hello');
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

/** The folder and everything in it. */
async function modesIn(
  folder: string,
): Promise<readonly { readonly path: string; readonly mode: number }[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => undefined);
  const paths = names === undefined ? [] : [folder, ...names.map((name) => join(folder, name))];
  return Promise.all(
    paths.map(async (path) => {
      const { mode } = await stat(path);
      return { path, mode };
    }),
  );
}

/** The addresses of the listening sockets of this process. */
async function listeningAddresses(): Promise<readonly string[]> {
  const files = await readdir('/proc/self/fd');
  const links = await Promise.all(files.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(String)));
  const own = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const rows = (await readFile('/proc/self/net/tcp', 'utf8')).split('\n').slice(1);
  const rows6 = (await readFile('/proc/self/net/tcp6', 'utf8').catch(() => ''))
    .split('\n')
    .slice(1);
  const addresses: string[] = [];
  for (const row of [...rows, ...rows6]) {
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/);
    if (state !== '0A' || !own.has(inode)) continue;
    const [hex = ''] = local.split(':');
    addresses.push(hex.length === 8 ? [...Buffer.from(hex, 'hex')].toReversed().join('.') : hex);
  }
  return addresses.toSorted();
}

// `millrace start` as a process, as `npm start` runs it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { throwawayCertificate } from '../src/testing/support/throwaway-certificate.ts';
import { runMillrace, spawnMillrace, type Outcome } from './cli-store-terminal.ts';
import { startProduct, type StartedProduct } from './start-product.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-start-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const start = (...more: readonly string[]): Promise<StartedProduct> =>
  startProduct(folder, ['start', ...more]);
const millrace = (...args: readonly string[]): Promise<Outcome> =>
  runMillrace(args, { cwd: folder });

/** The printed connection string, as a shell reads it when it is pasted. */
async function shellText(output: string): Promise<string> {
  const [quoted = ''] = /"kurrentdb:.*"/.exec(output) ?? [];
  const { stdout } = await promisify(execFile)('sh', ['-c', `printf %s ${quoted}`]);
  return stdout;
}

test('without authentication, which must be requested, connections are in plain text; tenants of --tenants are stored', async () => {
  const store = ['--store', 'sqlite:open.db'];
  const running = await start('--kurrent-auth', 'none', ...store, '--tenants', 'demo-za');
  assert.match(running.url, /^kurrentdb:\/\/127\.0\.0\.1:\d+\?tls=false&/);
  const client = KurrentDBClient.connectionString(running.url);
  const event = jsonEvent({ type: 'OrderPlaced', data: {} });
  await client.appendToStream('order-1', event);
  for (const stream of ['$persistentSubscriptionConfig', '$millrace-tokens', '$other']) {
    await assert.rejects(client.tombstoneStream(stream), { type: 'access-denied' });
    await assert.rejects(client.appendToStream(stream, event), { type: 'access-denied' });
  }
  await client.dispose();
  assert.equal(await running.stop('SIGTERM'), 0);

  // A tenant that overlaps the stored one is refused.
  const create = ['token', 'create', 'x', '--tenant', 'demo', '--scope', 'read'];
  const token = await millrace(...create, ...store);
  const again = await millrace('start', ...store, '--tenants', 'demo', '--port', '0');
  for (const { code, stderr } of [token, again]) {
    assert.equal(code, 1);
    assert.match(stderr, /^TENANT_OVERLAP.*'demo'.*'demo-za'/);
  }
});

test('a restart keeps events, admin token and key, the output has no secret, and a second process cannot use the same port', async () => {
  const first = await start();
  const writer = KurrentDBClient.connectionString(await shellText(first.said));
  const event = jsonEvent({ type: 'OrderPlaced', data: { amount: 12.5 } });
  await writer.appendToStream('order-1', event);
  await writer.dispose();
  const stranger = KurrentDBClient.connectionString(first.url.replace(/admin:.*@/, ''));
  await assert.rejects(Array.fromAsync(stranger.readStream('order-1')), { type: 'access-denied' });
  await stranger.dispose();
  const { base, token, said } = first;
  assert.doesNotMatch(said, /mr_/);
  assert.equal((await fetch(`${base}/health/ready`)).status, 200);
  assert.equal((await fetch(`${base}/api/v1/events`)).status, 401);
  const response = await fetch(`${base}/api/v1/streams/shop.order.v1-core-1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [{ type: 'order.placed.v1', payload: {} }] }),
  });
  assert.equal(response.status, 201);
  assert.equal(await first.stop('SIGTERM'), 0);

  const second = await start();
  assert.deepEqual([second.token, /mr_/.test(second.said)], [token, false]);
  const reader = KurrentDBClient.connectionString(second.url);
  const found: unknown[] = [];
  for await (const { event: read } of reader.readStream('order-1')) found.push(read?.data);
  await reader.dispose();
  assert.deepEqual(found, [{ amount: 12.5 }]);

  // A port that is in use is reported, and nothing else is printed.
  const { port } = new URL(second.url);
  const more = ['--port', '0', '--kurrent-port', port];
  const { code, stderr } = await spawnMillrace(['start', ...more], { cwd: folder });
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`^SERVER_UNAVAILABLE.*:${port}`));
  assert.equal(await second.stop('SIGINT'), 0);

  // The first test has kept the token of its store in this folder.
  const modes = new Map<string, string>();
  for (const entry of await readdir(join(folder, '.millrace'), { recursive: true })) {
    if (!/token$|tls/.test(entry)) continue;
    const { mode } = await stat(join(folder, '.millrace', entry));
    modes.set(entry, (mode & 0o777).toString(8));
  }
  assert.deepEqual(Object.fromEntries(modes), {
    'admin-2.token': '600',
    'admin.token': '600',
    tls: '700',
    'tls/ca.crt': '600',
    'tls/server.crt': '600',
    'tls/server.key': '600',
  });
});

test('an unknown role is rejected with the most similar one', async () => {
  const { code, stderr } = await millrace('start', '--roles', 'worker');
  assert.equal(code, 1);
  assert.match(stderr, /Did you mean 'workers'/);
});

test('a server that is reachable from other machines needs tokens and TLS', async () => {
  const wide = ['start', '--kurrent-port', '0', '--host', '0.0.0.0'];
  for (const [args, problem] of [
    [wide, /^CONFIG_INVALID.*--tls-cert/],
    [[...wide, '--kurrent-auth', 'none'], /^CONFIG_INVALID.*remove --kurrent-auth none/],
    [[...wide, '--kurrent-auth', 'tokens'], /^CONFIG_INVALID.*--tls-cert/],
    [[...wide, '--kurrent-auth', 'open'], /--kurrent-auth takes tokens or none/],
  ] as const) {
    const { code, stderr } = await millrace(...args);
    assert.notEqual(code, 0);
    assert.match(stderr, problem);
  }
});

test('a token created by the command line admits a client until the command line revokes it', async () => {
  using certificate = throwawayCertificate();
  await writeFile(join(folder, 'server.crt'), certificate.cert);
  await writeFile(join(folder, 'server.key'), certificate.key);
  const created = await millrace('token', 'create', 'ops', '--scope', 'admin', '--json');
  const { secret } = JSON.parse(created.stdout) as { readonly secret: string };
  const tls = ['--tls-cert', 'server.crt', '--tls-key', 'server.key'];
  const running = await start(...tls);
  const url = `${running.url.replace(/\/\/.*@/, '//')}&tlsCAFile=${certificate.authorityFile}`;
  const client = KurrentDBClient.connectionString(url.replace('://', `://ops:${secret}@`));
  await client.appendToStream('order-2', jsonEvent({ type: 'OrderPlaced', data: {} }));
  const stranger = KurrentDBClient.connectionString(url);
  await assert.rejects(Array.fromAsync(stranger.readStream('order-2')), { type: 'access-denied' });
  const subscription = client.subscribeToStream('order-2');
  const ended = once(subscription, 'error', { signal: AbortSignal.timeout(120_000) });
  // Reading the events lets the subscription continue until its error.
  subscription.on('data', () => undefined);
  await once(subscription, 'caughtUp', { signal: AbortSignal.timeout(120_000) });
  assert.equal((await millrace('token', 'revoke', 'ops')).code, 0);
  const [error] = (await ended) as [{ readonly type: string }];
  assert.equal(error.type, 'access-denied');
  await client.dispose();
  await stranger.dispose();
  assert.equal(await running.stop('SIGTERM'), 0);
});

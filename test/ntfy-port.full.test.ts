// `millrace start --ntfy-port`: topics on a separate port.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startProduct, type StartedProduct } from './start-product.ts';

let folder: string;
let product: StartedProduct;
let [http, ntfy, token] = ['', '', ''];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-ntfy-port-'));
  const args = ['start', '--no-kurrent', '--ntfy-port', '0', '--json'];
  product = await startProduct(folder, args, '"adminTokenFile"');
  const facts = JSON.parse(product.said) as Readonly<Record<string, string>>;
  [http, ntfy, token] = [facts['http'] ?? '', facts['ntfy'] ?? '', product.token ?? ''];
});
after(() => rm(folder, { recursive: true, force: true }));

const statusOf = async (url: string, init?: RequestInit): Promise<number> => {
  const response = await fetch(url, init);
  await response.body?.cancel();
  return response.status;
};

test('the port serves topics at its root, and no route of the product', async () => {
  assert.notEqual(new URL(http).port, new URL(ntfy).port);
  const published = await fetch(`${ntfy}/alerts`, { method: 'POST', body: 'hello' });
  assert.equal(published.status, 200);
  const messages = await (await fetch(`${ntfy}/alerts/json?poll=1`)).text();
  assert.match(messages, /"message":"hello"/);
  assert.deepEqual(await (await fetch(`${ntfy}/v1/health`)).json(), { healthy: true });
  const authorization = `Bearer ${token}`;
  for (const path of ['/health/ready', '/metrics', '/api/v1/streams/a', '/openapi.json', '/']) {
    assert.equal(await statusOf(ntfy + path, { headers: { authorization } }), 404, path);
  }
});

test("the product's port serves no topics", async () => {
  assert.equal(await statusOf(`${http}/health/ready`), 200);
  assert.equal(await statusOf(`${http}/alerts`, { method: 'POST', body: 'hello' }), 404);
  assert.equal(await statusOf(`${http}/alerts/json?poll=1`), 404);
  assert.equal(await statusOf(`${http}/v1/health`), 404);
});

test('platform administrators can add users, which are stored', async () => {
  const headers = { authorization: `Bearer ${token}` };
  const version = await fetch(`${ntfy}/v1/version`, { headers });
  assert.match(((await version.json()) as { readonly version: string }).version, /^\d+\.\d+/);
  const body = JSON.stringify({ username: 'ann', password: 'secret' });
  assert.equal(await statusOf(`${ntfy}/v1/users`, { method: 'POST', headers, body }), 200);
  const basic = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
  const said = { method: 'POST', body: 'x', headers: { authorization: basic } };
  assert.equal(await statusOf(`${ntfy}/alerts`, said), 200);
});

test('stopping the product ends the streams and frees both ports', async () => {
  const stream = await fetch(`${ntfy}/alerts/json`);
  const reader = stream.body?.getReader();
  await reader?.read();
  assert.equal(await product.stop('SIGTERM'), 0);
  const rest = await reader?.read().catch(() => ({ done: true }));
  assert.equal(rest?.done, true);
  for (const url of [http, ntfy]) {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) });
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
  }
});

// How `millrace start` ends: by a signal while it works, by a second signal, and when it cannot start.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openSqlite } from '../src/engines/sqlite/index.ts';
import { runMillrace, spawnMillrace } from './cli-store-terminal.ts';
import { startProduct, type StartedProduct } from './start-product.ts';

const subscriptionName = 'sub:shop:slow:v1';
const source = (path: string): string => new URL(`../src/${path}`, import.meta.url).href;

/** The handler ends when the file `go` exists. */
const config = `
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineConfig, defineModule } from '${source('platform/index.ts')}';
import { subscription } from '${source('subscriptions/index.ts')}';

const slow = subscription({
  name: '${subscriptionName}',
  async handler() {
    console.log('handling');
    while (!existsSync('go')) await sleep(20);
    console.log('handled');
  },
});
export default defineConfig({ modules: [defineModule({ name: 'shop', subscriptions: [slow] })] });
`;

let folder: string;
let files = 0;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-stop-'));
});
after(() => rm(folder, { recursive: true, force: true }));

interface Rig {
  readonly cwd: string;
  readonly product: StartedProduct;
}

async function startSlow(...more: readonly string[]): Promise<Rig> {
  files += 1;
  const cwd = await mkdtemp(join(folder, `${files}-`));
  await writeFile(join(cwd, 'millrace.config.ts'), config);
  return { cwd, product: await startProduct(cwd, ['start', '--no-kurrent', ...more]) };
}

const eventsPath = '/api/v1/streams/shop.order.v1-core-1/events';
const body = JSON.stringify({ events: [{ type: 'order.placed.v1', payload: {} }] });

function sending({ base, token }: StartedProduct) {
  const headers = { authorization: `Bearer ${token ?? ''}`, 'content-type': 'application/json' };
  return request(`${base}${eventsPath}`, { method: 'POST', headers });
}

/** Sends an event, and waits until the handler has it; the handler does not end. */
async function handle(product: StartedProduct): Promise<void> {
  const sent = sending(product).end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 201);
  response.resume();
  await product.whenPrinted('handling');
}

async function leasesHeld(cwd: string): Promise<number> {
  await using db = await openSqlite(`sqlite:${join(cwd, '.millrace/events.db')}`);
  return (await db.subscriptions.leases.list(subscriptionName)).length;
}

test('SIGTERM: the running handler and request finish, new connections are refused, and leases are released', async () => {
  const { cwd, product } = await startSlow();
  await handle(product);
  const half = sending(product);
  half.setHeader('content-length', body.length);
  half.write(body.slice(0, 10));
  // The server has received the first part when it has responded to a later request.
  await (await fetch(`${product.base}/health/live`)).text();
  product.signal('SIGTERM');
  await product.whenPrinted('Stopping');
  await assert.rejects(fetch(`${product.base}/health/live`));
  const responded = once(half, 'response');
  half.end(body.slice(10));
  const [response] = (await responded) as [IncomingMessage];
  assert.equal(response.statusCode, 201);
  response.resume();
  await writeFile(join(cwd, 'go'), '');
  assert.deepEqual(await product.ended, { code: 0, signal: null });
  await product.whenPrinted('handled');
  assert.equal(await leasesHeld(cwd), 0);
});

test('SIGINT: a handler and a request that do not finish are cut off at the deadline, and leases are released', async () => {
  const { cwd, product } = await startSlow('--shutdown-timeout', '3s');
  await handle(product);
  const half = sending(product);
  half.setHeader('content-length', body.length);
  const cut = once(half, 'error');
  half.write(body.slice(0, 10));
  await (await fetch(`${product.base}/health/live`)).text();
  product.signal('SIGINT');
  await cut;
  assert.deepEqual(await product.ended, { code: 0, signal: null });
  assert.equal(await leasesHeld(cwd), 0);
});

test('a second signal of either kind ends the process immediately', async () => {
  const { product } = await startSlow('--shutdown-timeout', '10m');
  await handle(product);
  product.signal('SIGINT');
  await product.whenPrinted('Stopping');
  // A signal that follows immediately counts as the same one, so it is repeated.
  const again = setInterval(() => product.signal('SIGTERM'), 50);
  const ended = await product.ended;
  clearInterval(again);
  assert.deepEqual(ended, { code: null, signal: 'SIGTERM' });
});

test('prints its addresses and token as JSON for scripts', async () => {
  const cwd = await mkdtemp(join(folder, 'json-'));
  const product = await startProduct(cwd, ['start', '--no-kurrent', '--json'], '"adminTokenFile"');
  const facts = JSON.parse(product.said) as Readonly<Record<string, string>>;
  assert.deepEqual(Object.keys(facts), ['store', 'http', 'adminTokenFile']);
  assert.equal((await fetch(`${facts['http'] ?? ''}/health/ready`)).status, 200);
  assert.equal(await product.stop('SIGTERM'), 0);
  assert.equal(product.output(), product.said);
});

test('a failed start ends the process with the reason, and leaves nothing running', async (t) => {
  const taken = createServer();
  t.after(() => taken.close());
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  for (const [env, args, problem] of [
    [{ MILLRACE_KEYS: 'redis://127.0.0.1:1' }, [], /^STORE_UNAVAILABLE.*Redis/m],
    [{}, ['--port', String(port)], new RegExp(`^SERVER_UNAVAILABLE.*:${port}`, 'm')],
  ] as const) {
    const { code, stderr } = await spawnMillrace(['start', '--no-kurrent', ...args], {
      cwd: folder,
      env,
    });
    assert.notEqual(code, 0);
    assert.match(stderr, problem);
  }
  for (const [env, args, problem] of [
    [{ MILLRACE_STORE: 'postgres://127.0.0.1:1/none' }, [], /^STORE_UNAVAILABLE/m],
    [{}, ['--shutdown-timeout', '0s'], /at least 1s/],
  ] as const) {
    const line = ['start', '--no-kurrent', ...args];
    const { code, stderr } = await runMillrace(line, { cwd: folder, env });
    assert.notEqual(code, 0);
    assert.match(stderr, problem);
  }
});

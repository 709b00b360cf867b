// Webhooks of a running product reach no address of the machine and its networks, however a URL or a name server says it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { until } from '../store/rig.ts';
import { startAttackedProduct } from './attacked-product.ts';
import { allowedAddress, answers, hookType, ssrfTargets } from './ssrf-corpus.ts';

interface Message {
  readonly status: string;
  readonly attempts: number;
  readonly lastError?: string;
  readonly payload: { readonly url: string };
}

async function listen(server: Server, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('webhooks of a running product reach no private address', async () => {
  await using opened = new AsyncDisposableStack();
  let reached = 0;
  // All addresses of the machine but one, in both families.
  const trap = createServer((_request, response) => {
    reached += 1;
    response.end();
  });
  opened.defer(() => void trap.close());
  const port = await listen(trap, '127.0.0.1');
  const trap6 = createServer(() => (reached += 1));
  opened.defer(() => void trap6.close());
  await listen(trap6, '::1', port).catch(() => assert.ok(!trap6.listening));
  const redirects = [301, 302, 303, 307, 308];
  const paths: string[] = [];
  const partner = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    const status = Number(path.slice(1));
    const headers = { connection: 'close', location: `http://127.0.0.1:${port}/` };
    response.writeHead(redirects.includes(status) ? status : 204, headers).end();
  });
  opened.defer(() => void partner.close());
  await listen(partner, allowedAddress, port);

  await using attacked = await startAttackedProduct(answers);
  const request = async (urls: readonly string[]): Promise<readonly Message[]> => {
    const events = urls.map((url) => ({ type: hookType, payload: { url } }));
    const response = await attacked.ask('/api/v1/streams/shop.hook.v1-core-1/events', { events });
    assert.equal(response.status, 201, await response.clone().text());
    let found: readonly Message[] = [];
    await until('each message was attempted', async () => {
      const page = await attacked.ask('/admin/outbox?limit=1000');
      const { items } = (await page.json()) as { readonly items: readonly Message[] };
      found = items.filter(({ payload }) => urls.includes(payload.url));
      const isTried = ({ status, attempts }: Message): boolean =>
        status === 'DEAD' || status === 'SENT' || attempts > 0;
      return found.length === urls.length && found.every(isTried);
    });
    return found;
  };

  const targets = ssrfTargets(port);
  for (const { payload, status, lastError } of await request(targets)) {
    assert.equal(status, 'DEAD', `${payload.url}: ${lastError}`);
  }
  assert.deepEqual([reached, paths, attacked.connections()], [0, [], []]);
  assert.ok(targets.length > 57, `${targets.length} targets`);

  // The name was checked when it had an allowed address, and is checked again with its next address.
  const rebinding = (at: number) => `http://rebinding.example:${port}/${at}`;
  const [before] = await request([rebinding(1)]);
  const [after] = await request([rebinding(2)]);
  assert.deepEqual([before?.status, after?.status], ['SENT', 'DEAD']);

  const moved = redirects.map((status) => `http://${allowedAddress}:${port}/${status}`);
  for (const { status, payload } of await request(moved)) {
    assert.notEqual(status, 'SENT', payload.url);
  }
  assert.deepEqual(paths.toSorted(), ['/1', ...redirects.map((status) => `/${status}`)]);
  assert.deepEqual([...new Set(attacked.connections())], [allowedAddress]);
  assert.equal(reached, 0);
  await attacked.assertServing('webhooks');
});

// A started product that corpora attack, on loopback addresses only, and the check that it still serves every protocol.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { WebSocket } from 'ws';
import { startProduct, type StartedProduct } from '../start-product.ts';
import { createWorkspace } from '../store/rig.ts';
import type { Answers } from './ssrf-corpus.ts';

export interface AttackedProduct extends AsyncDisposable {
  readonly product: StartedProduct;
  readonly token: string;
  readonly httpPort: number;
  readonly kurrentPort: number;
  readonly ask: (path: string, body?: object) => Promise<Response>;
  /** The addresses of all connections that the product opened. */
  readonly connections: () => readonly string[];
  /** Appends and reads an event over HTTP, gRPC and WebSocket. */
  readonly assertServing: (after: string) => Promise<void>;
}

const config = fileURLToPath(new URL('./attacked-config.ts', import.meta.url));

export async function startAttackedProduct(answers: Answers = {}): Promise<AttackedProduct> {
  await using stack = new AsyncDisposableStack();
  const { folder } = stack.use(await createWorkspace());
  await writeFile(join(folder, 'answers.json'), JSON.stringify(answers));
  const log = join(folder, 'connections.log');
  await writeFile(log, '');
  const product = await startProduct(folder, ['start', '--config', config], 'Ctrl-C', {
    // Each refused webhook is an error.
    MILLRACE_LOG_LEVEL: 'silent',
  });
  stack.defer(async () => assert.equal(await product.stop('SIGTERM'), 0));
  const { base, token = assert.fail('no token') } = product;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ask: AttackedProduct['ask'] = (path, body) =>
    fetch(`${base}${path}`, {
      headers,
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
  let count = 0;
  const all = stack.move();
  return {
    product,
    token,
    httpPort: Number(new URL(base).port),
    kurrentPort: Number(/:(\d+)\?/.exec(product.url)?.[1]),
    ask,
    connections: () => readFileSync(log, 'utf8').split('\n').slice(0, -1),
    async assertServing(after) {
      count += 1;
      const stream = `shop.order.v1-core-serving${count}`;
      const events = [{ type: 'order.placed.v1', payload: { count } }];
      const path = `/api/v1/streams/${stream}/events`;
      assert.equal((await ask(path, { events })).status, 201, after);
      const client = KurrentDBClient.connectionString(product.url);
      try {
        await client.appendToStream(stream, jsonEvent({ type: 'order.placed.v1', data: {} }));
        const read = await Array.fromAsync(client.readStream(stream));
        assert.equal(read.length, 2, after);
      } finally {
        await client.dispose();
      }
      const socket = new WebSocket(`${base.replace('http', 'ws')}/ws`, { headers });
      try {
        await once(socket, 'message');
        socket.send(JSON.stringify({ type: 'subscribe', id: 's', stream }));
        const [data] = (await once(socket, 'message')) as [Buffer];
        assert.match(data.toString(), /"subscribed"/, after);
      } finally {
        socket.terminate();
      }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { destinationConformance } from '../../testing/conformance/delivery/destination.ts';
import { startHttpReceiver } from '../../testing/servers/http-receiver.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { memoryEndpointHealth } from '../../delivery/endpoint-health.ts';
import { webhookDestination, type WebhookEndpoint, type WebhookOptions } from './destination.ts';

import { verifyWebhook } from './signature.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const oldSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const local = { allowAddresses: ['127.0.0.0/8'], allowHttp: true, timeoutMs: 60_000 } as const;
const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'webhook:acme',
  eventType: 'payment.completed.v1',
  payload: { text: 'hello' },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
  correlationId: 'c-1',
};
const receiver = await startHttpReceiver();
after(() => receiver[Symbol.asyncDispose]());
const endpoint = (fields: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
  id: 'acme',
  url: `${receiver.url}/hooks?x=1`,
  secrets: [secret, oldSecret],
  ...fields,
});

/** Sends one message with a new destination. */
async function deliver(
  options: Partial<WebhookOptions> = {},
  fields: Partial<DeliveryMessage> = {},
): Promise<DeliveryOutcome> {
  await using webhook = webhookDestination({ endpoint: endpoint(), ...local, ...options });
  const delivery = createDelivery({
    clock: options.clock,
    destinations: { webhook: { send: webhook, timeoutMs: 60_000 } },
  });
  // Awaited, because leaving this function closes the destination.
  return await delivery.deliver({ ...message, ...fields });
}

/** A server that writes exactly these bytes, or runs a function on the socket. */
async function rawServer(
  onSocket: (socket: Socket) => void,
): Promise<{ url: string } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => onSocket(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const conformant = webhookDestination({ endpoint: endpoint(), ...local });
after(() => conformant[Symbol.asyncDispose]());
for (const { name, skip, run } of destinationConformance({
  destination: conformant,
  async received() {
    return receiver.requests
      .filter(({ headers }) => headers['webhook-id'] !== undefined)
      .map(({ headers, body }) => {
        const parsed = JSON.parse(body) as { data: { text: string } };
        return { idempotencyKey: String(headers['idempotency-key']), text: parsed.data.text };
      });
  },
  secrets: [secret, oldSecret, secret.slice(6), oldSecret.slice(6)],
  away: () => receiver.away(),
  busy: async () => {
    const back = receiver.answer((_request, response) => response.writeHead(503).end('busy'));
    return async () => back();
  },
  rejects: async () => {
    const back = receiver.answer((_request, response) => response.writeHead(422).end('no'));
    return async () => back();
  },
  silent: async () => {
    const back = receiver.answer(() => undefined);
    return async () => back();
  },
})) {
  test(`webhook: ${name}`, { skip: skip ?? false }, run);
}

test('receivers verify the webhook with either secret, and its id is the idempotency key', async () => {
  assert.equal((await deliver({}, { sourceEventId: 'e.7|ü' })).kind, 'sent');
  const { method, path, headers, body } = receiver.requests.at(-1) ?? assert.fail();
  assert.deepEqual([method, path], ['POST', '/hooks?x=1']);
  for (const secrets of [[secret], [oldSecret]]) {
    assert.equal(verifyWebhook({ body, headers, secrets }).id, 'e%2E7|%C3%BC');
  }
  assert.equal(headers['idempotency-key'], 'e.7|%C3%BC');
  assert.equal(headers['x-correlation-id'], 'c-1');
  assert.equal(headers['x-tenant-id'], 'core');
});

test('sends custom headers, which cannot replace the signature', async () => {
  const headers = { Authorization: 'Bearer x', 'Webhook-Id': 'forged' };
  await deliver({ endpoint: endpoint({ headers }) });
  const request = receiver.requests.at(-1);
  assert.equal(request?.headers['authorization'], 'Bearer x');
  assert.equal(request?.headers['webhook-id'], 'e-1');
});

test('rejects headers of HTTP itself and invalid ones, when an endpoint is configured and when it is used', async () => {
  const sent = receiver.requests.length;
  const names = [
    'Transfer-Encoding',
    'content-length',
    'HOST',
    'Connection',
    'TE',
    'Upgrade',
    'Expect',
  ];
  for (const headers of [
    ...names.map((name) => ({ [name]: 'chunked' })),
    { x: 'a\r\nb: c' },
    { 'x y': '' },
  ]) {
    const target = endpoint({ headers });
    assert.throws(() => webhookDestination({ endpoint: target, ...local }), {
      code: 'CONFIG_INVALID',
    });
    const outcome = await deliver({ endpoint: async () => target });
    assert.equal(outcome.kind, 'dead');
  }
  assert.equal(receiver.requests.length, sent);
});

test('does not follow a redirect', async () => {
  const count = receiver.requests.length;
  const back = receiver.answer((_request, response) =>
    response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end(),
  );
  const outcome = await deliver();
  back();
  assert.equal(outcome.kind, 'retry');
  assert.equal(receiver.requests.length, count + 1);
});

test('returns Retry-After as the delay', async () => {
  const back = receiver.answer((_request, response) =>
    response.writeHead(429, { 'retry-after': '17' }).end(),
  );
  const outcome = await deliver();
  back();
  assert.ok(outcome.kind === 'retry' && outcome.afterMs === 17_000 && outcome.throttled === true);
});

test('keeps the first 2 KiB of a large response and does not read the rest', async () => {
  let written = 0;
  const sizeMax = 512 * 1_024 * 1_024;
  const closed = Promise.withResolvers<void>();
  const back = receiver.answer((_request, response) => {
    response.writeHead(500);
    response.on('close', closed.resolve);
    const chunk = Buffer.alloc(64 * 1_024, 'x');
    const more = (): void => {
      while (!response.destroyed && written < sizeMax) {
        written += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', more);
      }
    };
    more();
  });
  const outcome = await deliver();
  back();
  assert.equal(outcome.kind === 'retry' ? outcome.answer?.body.length : 0, 2_048);
  await closed.promise;
  assert.ok(written < sizeMax, `${written} bytes went out`);
});

test('retries after an invalid or truncated response, as ambiguous', async () => {
  const garbage = Buffer.from([0, 255, 1, 2, 13, 10, 13, 10]);
  for (const say of [
    (socket: Socket) => void socket.end(garbage),
    (socket: Socket) => void socket.end('HTTP/1.1 2'),
    (socket: Socket) => void socket.end(),
    (socket: Socket) => void socket.destroy(),
    (socket: Socket) => void socket.end('HTTP/9.9 200 OK\r\n\r\n'),
    (socket: Socket) => void socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}\r\n\r\n`),
  ]) {
    await using server = await rawServer(say);
    const outcome = await deliver({ endpoint: endpoint({ url: server.url }) });
    assert.ok(outcome.kind === 'retry' && outcome.ambiguous === true, JSON.stringify(outcome));
    assert.ok(outcome.error.length > 3);
  }
});

test('uses the status of a response whose body is truncated', async () => {
  await using server = await rawServer((socket) =>
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
  );
  const outcome = await deliver({ endpoint: endpoint({ url: server.url }) });
  const { request, ...rest } = outcome ?? assert.fail('no outcome');
  assert.deepEqual(rest, { kind: 'sent', answer: { status: 200, body: 'half' } });
  const { 'webhook-signature': signature, 'idempotency-key': key } = request?.headers ?? {};
  assert.deepEqual([signature, key], ['•••', 'e-1']);
});

test('removes characters from the response body that databases cannot store', async () => {
  await using server = await rawServer((socket) =>
    socket.end(Buffer.concat([Buffer.from('HTTP/1.1 500 No\r\n\r\na'), Buffer.from([0, 200, 27])])),
  );
  const outcome = await deliver({ endpoint: endpoint({ url: server.url }) });
  assert.ok(outcome.kind === 'retry' && outcome.answer?.body === 'a���', JSON.stringify(outcome));
});

test('timeoutMs limits the attempt, and a status that arrived in time counts', async () => {
  const clock = fakeClock();
  const arrived = Promise.withResolvers<void>();
  const back = receiver.answer(() => arrived.resolve());
  const options = { clock, timeoutMs: 5_000 };
  const silent = deliver(options);
  await arrived.promise;
  await clock.advance(5_000);
  const outcome = await silent;
  assert.ok(outcome.kind === 'retry' && outcome.ambiguous === true);
  assert.match(outcome.error, /5000 ms/);
  back();

  const began = Promise.withResolvers<void>();
  const onAnswer = (): void => began.resolve();
  subscribe('http.client.response.finish', onAnswer);
  await using server = await rawServer((socket) =>
    socket.write('HTTP/1.1 202 OK\r\nContent-Length: 100\r\n\r\nslow'),
  );
  const slow = deliver({ ...options, endpoint: endpoint({ url: server.url }) });
  await began.promise;
  unsubscribe('http.client.response.finish', onAnswer);
  await new Promise(setImmediate);
  await clock.advance(5_000);
  assert.equal((await slow).kind, 'sent');
});

test('reuses connections, and one that the receiver closed causes no retry', async () => {
  await using own = await startHttpReceiver();
  await using webhook = webhookDestination({ endpoint: endpoint({ url: own.url }), ...local });
  const delivery = createDelivery({ destinations: { webhook } });
  await delivery.deliver(message);
  await delivery.deliver(message);
  assert.equal(own.connections, 1);
  const back = own.answer((_request, response) => {
    // The receiver responds, then closes the connection without a Connection: close header.
    response.writeHead(204).end(() => response.socket?.destroy());
  });
  assert.equal((await delivery.deliver(message)).kind, 'sent');
  back();
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await delivery.deliver(message)).kind, 'sent');
  }
});

test('rejects a private address, before and after name resolution', async () => {
  const guarded = { allowHttp: true, timeoutMs: 60_000 };
  assert.throws(() => webhookDestination({ endpoint: endpoint(), ...guarded }), {
    code: 'ADDRESS_FORBIDDEN',
  });
  const count = receiver.requests.length;
  const find = (url: string) => ({ endpoint: async () => endpoint({ url }) });
  const { port } = receiver;
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    '127.1',
  ]) {
    await using webhook = webhookDestination({ ...find(`http://${host}:${port}/`), ...guarded });
    const { deliver: send } = createDelivery({ destinations: { webhook } });
    const outcome = await send(message);
    assert.equal(outcome.kind, 'dead', `${host}: ${JSON.stringify(outcome)}`);
  }
  assert.equal(receiver.requests.length, count);
});

test('a name server cannot bypass the check by returning another address later', async () => {
  let lookups = 0;
  const url = `http://hooks.example:${receiver.port}/`;
  await using webhook = webhookDestination({
    endpoint: endpoint({ url }),
    allowHttp: true,
    // The first address is allowed; the second one is private.
    allowAddresses: ['127.0.0.1/32'],
    resolve: async () => {
      lookups += 1;
      return [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    },
    timeoutMs: 60_000,
  });
  const { deliver: send } = createDelivery({ destinations: { webhook } });
  assert.equal((await send(message)).kind, 'sent');
  // The name was resolved only once, so the connection used the checked address.
  assert.equal(lookups, 1);
  assert.equal(receiver.requests.at(-1)?.headers.host, `hooks.example:${receiver.port}`);
  await (
    await receiver.away()
  )();
  const outcome = await send(message);
  assert.equal(outcome.kind, 'dead');
  assert.equal(lookups, 2);
});

test('retries if the name does not resolve', async () => {
  const resolve = async () => {
    throw new Error('ENOTFOUND hooks.example');
  };
  const url = 'https://hooks.example/';
  const outcome = await deliver({ endpoint: endpoint({ url }), resolve });
  assert.ok(outcome.kind === 'retry' && outcome.ambiguous !== true);
});

test('skips event types without a subscription, and dead-letters messages without an endpoint', async () => {
  const count = receiver.requests.length;
  const outcome = await deliver({ endpoint: endpoint({ eventTypes: ['account.*'] }) });
  assert.ok(outcome.kind === 'sent' && outcome.skipped !== undefined);
  assert.equal((await deliver({ endpoint: async () => undefined })).kind, 'dead');
  assert.equal(receiver.requests.length, count);
});

test('410 disables the endpoint, stops further sends, and notifies its owner once', async () => {
  const health = memoryEndpointHealth();
  const notified: string[] = [];
  const options = { health, onDisabled: ({ id }: WebhookEndpoint) => void notified.push(id) };
  const back = receiver.answer((_request, response) => response.writeHead(410).end());
  assert.equal((await deliver(options)).kind, 'dead');
  back();
  const count = receiver.requests.length;
  const next = await deliver(options);
  assert.ok(next.kind === 'dead' && next.error.includes('410'));
  assert.equal(receiver.requests.length, count);
  assert.deepEqual(notified, ['acme']);
  await health.update('acme', () => ({ failures: 0 }));
  assert.equal((await deliver(options)).kind, 'sent');
});

test('disables an endpoint that fails for days without a success in between', async () => {
  const health = memoryEndpointHealth();
  const clock = fakeClock();
  const options = { health, clock, disable: { afterMs: 1_000, failuresMin: 2 } };
  const broken = () => receiver.answer((_request, response) => response.writeHead(500).end());
  let back = broken();
  await deliver(options);
  await clock.advance(999);
  await deliver(options);
  back();
  assert.equal((await deliver(options)).kind, 'sent');
  back = broken();
  await deliver(options);
  await clock.advance(1_000);
  await deliver(options);
  back();
  assert.equal((await deliver(options)).kind, 'dead');
  assert.match((await health.read('acme'))?.disabled?.reason ?? '', /2 failures/);
});

test('a sent webhook stays sent if recording its health or notifying the owner fails', async () => {
  const fail = async (): Promise<never> => {
    throw new Error('database unavailable');
  };
  const failing = { failures: 3, failingSinceMs: 0 };
  const health = { read: async () => failing, update: fail };
  assert.equal((await deliver({ health })).kind, 'sent');
  // Without reading the health, the endpoint may be disabled, so nothing is sent.
  const unread = await deliver({ health: { read: fail, update: fail } });
  assert.ok(unread.kind === 'retry' && unread.error.includes('unavailable'));
  const back = receiver.answer((_request, response) => response.writeHead(410).end());
  const onDisabled = (): never => {
    throw new Error('mail server unavailable');
  };
  const response = await deliver({ health: memoryEndpointHealth(), onDisabled });
  back();
  assert.ok(response.kind === 'dead' && response.answer?.status === 410);
});

test('an abort at shutdown does not change the health of the endpoint', async () => {
  const health = memoryEndpointHealth();
  const arrived = Promise.withResolvers<void>();
  const back = receiver.answer(() => arrived.resolve());
  await using webhook = webhookDestination({ endpoint: endpoint(), ...local, health });
  const stopping = new AbortController();
  const context = { attempt: 1, isDuplicate: false, tenantId: undefined, correlationId: undefined };
  const call = webhook(message, { ...context, idempotencyKey: 'k', signal: stopping.signal });
  await arrived.promise;
  stopping.abort();
  const outcome = await call;
  back();
  assert.ok(outcome?.kind === 'retry' && outcome.ambiguous === true);
  assert.equal(await health.read('acme'), undefined);
});

test('sends and signs CloudEvents in both forms', async () => {
  for (const format of ['cloudevents-structured', 'cloudevents-binary'] as const) {
    assert.equal((await deliver({ format })).kind, 'sent');
    const { headers, body } = receiver.requests.at(-1) ?? assert.fail();
    assert.equal(verifyWebhook({ body, headers, secrets: [secret] }).id, 'e-1');
    const isBinary = format === 'cloudevents-binary';
    assert.equal(headers['ce-type'], isBinary ? 'payment.completed.v1' : undefined);
  }
});

test('a closed destination sends nothing and returns a retry', async () => {
  const webhook = webhookDestination({ endpoint: endpoint(), ...local });
  await webhook[Symbol.asyncDispose]();
  const delivery = createDelivery({ destinations: { webhook } });
  assert.equal((await delivery.deliver(message)).kind, 'retry');
});

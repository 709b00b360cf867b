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
import { webhookDestination, type WebhookOptions } from './webhook-destination.ts';
import type { WebhookEndpoint } from './webhook-endpoint.ts';
import { verifyWebhook } from './webhook-signature.ts';

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

/** One message by a destination of its own. */
async function deliver(
  options: Partial<WebhookOptions> = {},
  fields: Partial<DeliveryMessage> = {},
): Promise<DeliveryOutcome> {
  await using webhook = webhookDestination({ endpoint: endpoint(), ...local, ...options });
  const delivery = createDelivery({
    clock: options.clock,
    destinations: { webhook: { send: webhook, timeoutMs: 60_000 } },
  });
  // Awaited, as leaving this function closes the destination.
  return await delivery.deliver({ ...message, ...fields });
}

/** A server that says exactly these bytes, or does what it is told with the socket. */
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
  refuses: async () => {
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

test('a receiver with either secret verifies what came, with the key as its id', async () => {
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

test('own headers are sent, but cannot stand in for the signature', async () => {
  const headers = { Authorization: 'Bearer x', 'Webhook-Id': 'forged' };
  await deliver({ endpoint: endpoint({ headers }) });
  const request = receiver.requests.at(-1);
  assert.equal(request?.headers['authorization'], 'Bearer x');
  assert.equal(request?.headers['webhook-id'], 'e-1');
  const bad = await deliver({ endpoint: endpoint({ headers: { x: 'a\r\nb: c' } }) });
  assert.equal(bad.kind, 'dead');
});

test('a redirect is not followed', async () => {
  const count = receiver.requests.length;
  const back = receiver.answer((_request, response) =>
    response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end(),
  );
  const outcome = await deliver();
  back();
  assert.equal(outcome.kind, 'retry');
  assert.equal(receiver.requests.length, count + 1);
});

test('Retry-After is passed on', async () => {
  const back = receiver.answer((_request, response) =>
    response.writeHead(429, { 'retry-after': '17' }).end(),
  );
  const outcome = await deliver();
  back();
  assert.ok(outcome.kind === 'retry' && outcome.afterMs === 17_000 && outcome.throttled === true);
});

test('a huge answer is kept up to 2 KiB, and the rest is not read', async () => {
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

test('an answer of garbage, or half of one, is a retry that may have arrived', async () => {
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

test('a body that breaks off behind its status changes nothing', async () => {
  await using server = await rawServer((socket) =>
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
  );
  const outcome = await deliver({ endpoint: endpoint({ url: server.url }) });
  assert.deepEqual(outcome, { kind: 'sent', answer: { status: 200, body: 'half' } });
});

test('a body that holds what no database keeps is made fit', async () => {
  await using server = await rawServer((socket) =>
    socket.end(Buffer.concat([Buffer.from('HTTP/1.1 500 No\r\n\r\na'), Buffer.from([0, 200, 27])])),
  );
  const outcome = await deliver({ endpoint: endpoint({ url: server.url }) });
  assert.ok(outcome.kind === 'retry' && outcome.answer?.body === 'a���', JSON.stringify(outcome));
});

test('its own timeoutMs limits the attempt, and an answer whose status arrived in time counts', async () => {
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

test('connections are kept, and one that the receiver closed meanwhile costs no retry', async () => {
  await using own = await startHttpReceiver();
  await using webhook = webhookDestination({ endpoint: endpoint({ url: own.url }), ...local });
  const delivery = createDelivery({ destinations: { webhook } });
  await delivery.deliver(message);
  await delivery.deliver(message);
  assert.equal(own.connections, 1);
  const back = own.answer((_request, response) => {
    // Answers and hangs up without having said so.
    response.writeHead(204).end(() => response.socket?.destroy());
  });
  assert.equal((await delivery.deliver(message)).kind, 'sent');
  back();
  for (let count = 0; count < 5; count += 1) {
    assert.equal((await delivery.deliver(message)).kind, 'sent');
  }
});

test('an address of the own network is refused, before and after the name is resolved', async () => {
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

test('a name server that changes its answer gains nothing', async () => {
  let asked = 0;
  const url = `http://hooks.example:${receiver.port}/`;
  await using webhook = webhookDestination({
    endpoint: endpoint({ url }),
    allowHttp: true,
    // What is allowed the first time; the second answer leads into the network.
    allowAddresses: ['127.0.0.1/32'],
    resolve: async () => {
      asked += 1;
      return [{ address: asked === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    },
    timeoutMs: 60_000,
  });
  const { deliver: send } = createDelivery({ destinations: { webhook } });
  assert.equal((await send(message)).kind, 'sent');
  // The connection was made to the address that was checked: it asked once, not again to connect.
  assert.equal(asked, 1);
  assert.equal(receiver.requests.at(-1)?.headers.host, `hooks.example:${receiver.port}`);
  await (
    await receiver.away()
  )();
  const outcome = await send(message);
  assert.equal(outcome.kind, 'dead');
  assert.equal(asked, 2);
});

test('a name that cannot be resolved is a retry', async () => {
  const resolve = async () => {
    throw new Error('ENOTFOUND hooks.example');
  };
  const url = 'https://hooks.example/';
  const outcome = await deliver({ endpoint: endpoint({ url }), resolve });
  assert.ok(outcome.kind === 'retry' && outcome.ambiguous === undefined);
});

test('what the endpoint does not want is not sent, and one that is gone is a dead letter', async () => {
  const count = receiver.requests.length;
  const outcome = await deliver({ endpoint: endpoint({ eventTypes: ['account.*'] }) });
  assert.ok(outcome.kind === 'sent' && outcome.skipped !== undefined);
  assert.equal((await deliver({ endpoint: async () => undefined })).kind, 'dead');
  assert.equal(receiver.requests.length, count);
});

test('410 disables the endpoint: nothing more is sent there, and its owner is told once', async () => {
  const health = memoryEndpointHealth();
  const told: string[] = [];
  const options = { health, onDisabled: ({ id }: WebhookEndpoint) => void told.push(id) };
  const back = receiver.answer((_request, response) => response.writeHead(410).end());
  assert.equal((await deliver(options)).kind, 'dead');
  back();
  const count = receiver.requests.length;
  const next = await deliver(options);
  assert.ok(next.kind === 'dead' && next.error.includes('410'));
  assert.equal(receiver.requests.length, count);
  assert.deepEqual(told, ['acme']);
  await health.update('acme', () => ({ failures: 0 }));
  assert.equal((await deliver(options)).kind, 'sent');
});

test('an endpoint that fails for days is disabled, and one success in between saves it', async () => {
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

test('a webhook that was sent stays so when its health cannot be written, or the owner not told', async () => {
  const away = async (): Promise<never> => {
    throw new Error('the database is away');
  };
  const failing = { failures: 3, failingSinceMs: 0 };
  const health = { read: async () => failing, update: away };
  assert.equal((await deliver({ health })).kind, 'sent');
  // But one whose endpoint may be disabled is not sent unseen.
  const unread = await deliver({ health: { read: away, update: away } });
  assert.ok(unread.kind === 'retry' && unread.error.includes('away'));
  const back = receiver.answer((_request, response) => response.writeHead(410).end());
  const onDisabled = (): never => {
    throw new Error('no mail today');
  };
  const gone = await deliver({ health: memoryEndpointHealth(), onDisabled });
  back();
  assert.ok(gone.kind === 'dead' && gone.answer?.status === 410);
});

test('a stop in the middle says nothing about the endpoint', async () => {
  const health = memoryEndpointHealth();
  const arrived = Promise.withResolvers<void>();
  const back = receiver.answer(() => arrived.resolve());
  await using webhook = webhookDestination({ endpoint: endpoint(), ...local, health });
  const stopping = new AbortController();
  const context = { attempt: 1, isRepeated: false, tenantId: undefined, correlationId: undefined };
  const call = webhook(message, { ...context, idempotencyKey: 'k', signal: stopping.signal });
  await arrived.promise;
  stopping.abort();
  const outcome = await call;
  back();
  assert.ok(outcome?.kind === 'retry' && outcome.ambiguous === true);
  assert.equal(await health.read('acme'), undefined);
});

test('CloudEvents go out in both forms, signed like the rest', async () => {
  for (const format of ['cloudevents-structured', 'cloudevents-binary'] as const) {
    assert.equal((await deliver({ format })).kind, 'sent');
    const { headers, body } = receiver.requests.at(-1) ?? assert.fail();
    assert.equal(verifyWebhook({ body, headers, secrets: [secret] }).id, 'e-1');
    const isBinary = format === 'cloudevents-binary';
    assert.equal(headers['ce-type'], isBinary ? 'payment.completed.v1' : undefined);
  }
});

test('what was closed sends no more, and leaves the message to others', async () => {
  const webhook = webhookDestination({ endpoint: endpoint(), ...local });
  await webhook[Symbol.asyncDispose]();
  const delivery = createDelivery({ destinations: { webhook } });
  assert.equal((await delivery.deliver(message)).kind, 'retry');
});

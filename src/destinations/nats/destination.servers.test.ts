import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import {
  destinationConformance,
  type Received,
} from '../../testing/conformance/delivery/destination.ts';
import { startNats } from '../../testing/servers/nats-server.ts';
import { sharedNats } from '../../testing/servers/shared-servers.ts';
import { natsDestination } from './destination.ts';

const server = await startNats();
const stream = { name: 'payments', subjects: ['payments.>'] };
const subject = 'payments.completed';
const destination = await natsDestination(server.url, { stream, subject });
const reader = await connect({
  servers: server.url,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 50,
});
after(async () => {
  await destination[Symbol.asyncDispose]();
  await reader.close();
  await server[Symbol.asyncDispose]();
});

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'nats:payments',
  eventType: 'payment.completed.v1',
  payload: { text: 'hello' },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
};

/** Reads a message of the stream by sequence. */
async function stored(connection: NatsConnection, name: string) {
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info(name);
  const found = [];
  for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
    const entry = await manager.streams.getMessage(name, { seq });
    if (entry !== null) found.push(entry);
  }
  return found;
}

/** Retries: a server that is starting does not reply. */
async function storedInTheEnd(connection: NatsConnection, name: string) {
  const deadline = performance.now() + 120_000;
  for (;;) {
    try {
      return await stored(connection, name);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

for (const { name, skip, run } of destinationConformance({
  destination,
  dedupes: true,
  async received(): Promise<readonly Received[]> {
    return (await storedInTheEnd(reader, 'payments')).map((entry) => ({
      idempotencyKey: decodeURIComponent(entry.header.get('Nats-Msg-Id')),
      text: entry.json<{ text: string }>().text,
    }));
  },
  away: async () => {
    await server.kill();
    return () => server.start();
  },
  silent: async () => {
    server.pause();
    return async () => server.resume();
  },
})) {
  test(`NATS: ${name}`, { skip: skip ?? false }, run);
}

test('a duplicate gets the receipt of the first message', async () => {
  const { url, prefix } = await sharedNats();
  const name = `${prefix}once`;
  const options = { subject: `${name}.x`, stream: { name, subjects: [`${name}.>`] } };
  await using send = await natsDestination(url, options);
  // A second destination finds the stream.
  await using other = await natsDestination(url, options);
  const one = createDelivery({ destinations: { nats: send } });
  const two = createDelivery({ destinations: { nats: other } });
  const strange = { ...message, sourceEventId: 'e 1|ü\r\n', correlationId: 'c\r\nx: y' };
  for (const { deliver } of [one, two, one]) {
    assert.deepEqual(await deliver(strange), { kind: 'sent', receipt: `${name}:1` });
  }
  const connection = await connect({ servers: url });
  const [entry, ...others] = await stored(connection, name);
  assert.deepEqual(others, []);
  assert.equal(entry?.header.get('event-type'), 'payment.completed.v1');
  assert.equal(entry?.header.get('tenant-id'), 'core');
  assert.equal(entry?.header.get('correlation-id'), 'c%0D%0Ax:%20y');
  const manager = await jetstreamManager(connection);
  const { config } = await manager.streams.info(name);
  assert.equal(config.duplicate_window, 7_200_000 * 1_000_000);
  await connection.close();
});

test('retries a subject without a stream, since the stream may be created later', async () => {
  const { url, prefix } = await sharedNats();
  await using send = await natsDestination(url, { subject: `${prefix}nobody.x` });
  const { deliver } = createDelivery({ destinations: { nats: send } });
  assert.equal((await deliver(message)).kind, 'retry');
});

test('a message chooses no subject outside of the namespace of its destination', async () => {
  await using own = await startNats();
  const streams = { name: 'payments', subjects: ['payments.>'] };
  await using computed = await natsDestination(own.url, {
    stream: streams,
    subject: ({ eventType }) => eventType,
  });
  await using free = await natsDestination(own.url, { subject: ({ eventType }) => eventType });
  await using fixed = await natsDestination(own.url, { subject: 'payments.fixed' });
  const connection = await connect({ servers: own.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: 'others', subjects: ['gbe.>', 'orders.>'] });
  const { deliver } = createDelivery({ destinations: { computed, free, fixed } });
  const invalid = [
    '',
    'gbe.notify.topic.news',
    '$JS.API.STREAM.PURGE.others',
    '_INBOX.a',
    'payments.>',
  ];
  invalid.push(
    'payments.*',
    'payments..a',
    'payments.a b',
    'payments.a\r\nPUB gbe.evil 1\r\nx\r\n',
  );
  const cases = [
    ...[...invalid, 'orders.placed'].map((eventType) => ({
      eventType,
      integrationType: 'computed',
    })),
    ...invalid.map((eventType) => ({ eventType, integrationType: 'free' })),
  ];
  for (const [at, { eventType, integrationType }] of cases.entries()) {
    const event = { ...message, eventType, sourceEventId: `e-${at}` };
    const outcome = await deliver({ ...event, integrationType });
    assert.equal(outcome.kind, 'dead', `${integrationType} ${eventType}`);
    // The subject is that of the configuration, whatever the message contains.
    const contact = { subject: eventType, topic: eventType, webhookUrl: eventType };
    const sent = await deliver({ ...event, integrationType: 'fixed', payload: contact });
    assert.equal(sent.kind, 'sent');
  }
  for (const integrationType of ['computed', 'free']) {
    const valid = { ...message, integrationType, sourceEventId: integrationType };
    assert.equal((await deliver({ ...valid, eventType: 'payments.made' })).kind, 'sent');
  }
  assert.equal((await manager.streams.info('others')).state.messages, 0);
  const { state } = await manager.streams.info('payments', { subjects_filter: '>' });
  assert.deepEqual(state.subjects, { 'payments.fixed': cases.length, 'payments.made': 2 });
  await connection.close();
});

test('dead-letters a payload above the limit of the server', async () => {
  const { url, prefix } = await sharedNats();
  const name = `${prefix}large`;
  const options = { subject: `${name}.x`, stream: { name, subjects: [`${name}.>`] } };
  await using send = await natsDestination(url, options);
  const { deliver } = createDelivery({ destinations: { nats: send } });
  const outcome = await deliver({ ...message, payload: { text: 'x'.repeat(2_000_000) } });
  assert.equal(outcome.kind, 'dead', JSON.stringify(outcome));
  assert.equal((await deliver(message)).kind, 'sent');
});

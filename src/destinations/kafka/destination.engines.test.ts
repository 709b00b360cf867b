// The Kafka destination against a real Apache Kafka broker.

import { openMemory } from '../../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { deadLetterTopic, kafkaDestination } from './index.ts';
import { createDelivery, type DeliveryMessage } from '../../delivery/index.ts';
import { destinationConformance } from '../../testing/conformance/delivery/destination.ts';
import { createOutboxDispatcher } from '../../outbox/index.ts';
import { kafkaJarFolder, startKafka } from '../../testing/support/kafka/kafka-server.ts';
import { recordsOf } from '../../testing/support/kafka/kafka-topic.ts';

const jarFolder = kafkaJarFolder();
const title = 'the Kafka destination, on Apache Kafka';

if (jarFolder === undefined) test(title, { skip: 'Kafka was not downloaded' });
else {
  const server = await startKafka(jarFolder);
  after(() => server[Symbol.asyncDispose]());
  await server.createTopic('conformance', { partitions: 3 });
  const destination = await kafkaDestination(server.brokers);
  const checked = await kafkaDestination(server.brokers, {
    timeoutMs: 2_000,
    topic: () => 'conformance',
  });
  after(() => Promise.all([destination, checked].map((each) => each[Symbol.asyncDispose]())));

  describe(title, () => {
    for (const { name, skip, run } of destinationConformance({
      destination: checked,
      async received() {
        return (await recordsOf(server.brokers, 'conformance')).map(({ headers, value }) => ({
          idempotencyKey: headers['idempotencyKey'] ?? '',
          text: String((JSON.parse(value) as { text?: string }).text),
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
      test(name, { skip: skip ?? false }, run);
    }

    test('a message becomes a record with its key, string headers and payload', async () => {
      await server.createTopic('payments', { partitions: 3 });
      const { deliver } = createDelivery({ destinations: { kafka: destination } });
      const outcome = await deliver(
        newMessage({ orderingKey: 'order-7', headers: { retries: 3 } }),
      );
      const [record] = await recordsOf(server.brokers, 'payments');
      assert.deepEqual(
        outcome.kind === 'sent' && outcome.receipt,
        `payments:${String(record?.partition)}:0`,
      );
      assert.equal(record?.key, 'order-7');
      assert.equal(record?.value, '{"amount":5}');
      assert.equal(record?.headers['retries'], '3');
      assert.equal(record?.headers['tenantId'], 'core');
    });

    test('a batch keeps the order of each key across requests and partitions', async () => {
      await server.createTopic('ordered', { partitions: 4 });
      await using kafka = await kafkaDestination(server.brokers, { recordsMax: 50 });
      const messages = Array.from({ length: 1_000 }, (_, index) =>
        newMessage({
          integrationType: 'kafka:ordered',
          orderingKey: `key-${index % 10}`,
          payload: { index },
        }),
      );
      const outcomes = await kafka.sendBatch(messages);
      assert.ok(outcomes.every(({ kind }) => kind === 'sent'));
      const records = await recordsOf(server.brokers, 'ordered');
      assert.equal(records.length, messages.length);
      assert.ok(new Set(records.map(({ partition }) => partition)).size > 1);
      for (const [, group] of Map.groupBy(records, ({ key }) => key)) {
        const found = group.map(({ value }) => (JSON.parse(value) as { index: number }).index);
        assert.deepEqual(
          found,
          found.toSorted((a, b) => a - b),
        );
        assert.equal(found.length, 100);
      }
      for (const [at, outcome] of outcomes.entries()) {
        const [, partition, offset] =
          (outcome.kind === 'sent' && outcome.receipt?.split(':')) || [];
        const record = records.filter((each) => each.partition === Number(partition))[
          Number(offset)
        ];
        assert.deepEqual(
          JSON.parse(record?.value ?? ''),
          { index: at },
          'the receipt names partition and offset',
        );
      }
    });

    test('a message that is too large is dead-lettered alone, and the others arrive in order', async () => {
      await server.createTopic('small', { configs: { 'max.message.bytes': '20000' } });
      const texts = [
        'a',
        'b'.repeat(30_000),
        'c',
        'd'.repeat(9_000),
        'e'.repeat(9_000),
        'f'.repeat(9_000),
      ];
      const outcomes = await destination.sendBatch(
        texts.map((text) =>
          newMessage({ integrationType: 'kafka:small', orderingKey: 'one', payload: { text } }),
        ),
      );
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ['sent', 'dead', 'sent', 'sent', 'sent', 'sent'],
      );
      assert.match((outcomes[1] as { error: string }).error, /MESSAGE_TOO_LARGE/);
      const found = (await recordsOf(server.brokers, 'small')).map(
        ({ value }) => (JSON.parse(value) as { text: string }).text[0],
      );
      assert.deepEqual(found, ['a', 'c', 'd', 'e', 'f']);
    });

    test('messages to an unknown topic are retried until it exists, and other messages are sent', async () => {
      const later = newMessage({ integrationType: 'kafka:later' });
      const [first, second] = await destination.sendBatch([later, newMessage()]);
      assert.ok(first?.kind === 'retry' && first.ambiguous !== true);
      assert.match(first.error, /unknown topic/i);
      assert.equal(second?.kind, 'sent');
      await server.createTopic('later');
      assert.equal((await destination.sendBatch([later]))[0]?.kind, 'sent');
      const [never] = await destination.sendBatch([newMessage({ integrationType: 'kafka:a b' })]);
      assert.equal(never?.kind, 'dead');
    });

    test('CloudEvents are sent in structured and binary form', async () => {
      await server.createTopic('events');
      for (const format of ['cloudevents-structured', 'cloudevents-binary'] as const) {
        await using kafka = await kafkaDestination([server.brokers], { format });
        await kafka.sendBatch([newMessage({ integrationType: 'kafka:events' })]);
      }
      const [structured, binary] = await recordsOf(server.brokers, 'events');
      const event = JSON.parse(structured?.value ?? '') as Record<string, unknown>;
      assert.equal(event['type'], 'payment.completed.v1');
      assert.deepEqual(event['data'], { amount: 5 });
      assert.match(structured?.headers['content-type'] ?? '', /^application\/cloudevents\+json/);
      assert.equal(binary?.headers['ce_type'], 'payment.completed.v1');
      assert.equal(binary?.value, '{"amount":5}');
    });

    test('credentials are used, and wrong credentials cause a retry that does not reveal them', async () => {
      const { brokers, username, password } = server.guarded;
      const open = (given: string) =>
        kafkaDestination(brokers, { sasl: { mechanism: 'PLAIN', username, password: given } });
      await using right = await open(password);
      assert.equal((await right.sendBatch([newMessage()]))[0]?.kind, 'sent');
      await using wrong = await open('not-the-password');
      const [outcome] = await wrong.sendBatch([newMessage()]);
      assert.equal(outcome?.kind, 'retry');
      assert.ok(!JSON.stringify(outcome).includes('not-the-password'));
    });

    test('closing does not wait for a broker that does not respond', async () => {
      const kafka = await kafkaDestination(server.brokers, { timeoutMs: 1_000 });
      assert.equal((await kafka.sendBatch([newMessage()]))[0]?.kind, 'sent');
      server.pause();
      try {
        const sending = kafka.sendBatch([newMessage()]);
        await kafka[Symbol.asyncDispose]();
        assert.equal((await sending)[0]?.kind, 'retry');
      } finally {
        server.resume();
      }
    });

    test('a dead letter is written to its topic with the error', async () => {
      await server.createTopic('dead');
      await using onDead = await deadLetterTopic(server.brokers, { topic: 'dead' });
      const message = newMessage();
      await onDead(message, 'HTTP 404');
      const [record] = await recordsOf(server.brokers, 'dead');
      assert.equal(record?.key, message.sourceEventId);
      assert.equal(record?.headers['error'], 'HTTP 404');
      const letter = JSON.parse(record?.value ?? '') as Record<string, unknown>;
      assert.equal(letter['outboxId'], message.id);
      assert.deepEqual(letter['payload'], { amount: 5 });
      await using lost = await deadLetterTopic(server.brokers, { topic: 'not-there' });
      await assert.rejects(lost(message, 'HTTP 404'), { code: 'STORE_UNAVAILABLE' });
    });

    test('no message is lost when the broker is killed and restarted', async () => {
      await server.createTopic('restarted', { partitions: 3 });
      await using kafka = await kafkaDestination(server.brokers, { timeoutMs: 2_000 });
      const { deliver } = createDelivery({
        destinations: { kafka: { send: kafka, breaker: { openMs: 100, openMsMax: 200 } } },
      });
      const ledger = openMemory().outbox;
      const keys = Array.from({ length: 1_000 }, () => randomUUID());
      let sent = 0;
      const enough = Promise.withResolvers<void>();
      await using dispatcher = createOutboxDispatcher({
        ledger,
        deliver: async (message, context) => {
          const outcome = await deliver(message, context);
          if (outcome.kind === 'sent' && (sent += 1) === 300) enough.resolve();
          return outcome;
        },
        schedule: { initialMs: 50, factor: 1, capMs: 50, jitterMs: 50 },
      });
      await ledger.enqueueMany(
        keys.map((sourceEventId, at) => ({
          integrationType: 'kafka:restarted',
          eventType: 'payment.completed.v1',
          payload: { at },
          sourceStreamId: 'paymenthub.payment.v1-core-1',
          sourceEventId,
          maxAttempts: 1_000,
        })),
      );
      await dispatcher.start();
      await enough.promise;
      await server.kill();
      await server.start();
      const untilMs = Date.now() + 60_000;
      const arrived = async () =>
        new Set((await recordsOf(server.brokers, 'restarted')).map(({ key }) => key));
      while ((await arrived()).size < keys.length && Date.now() < untilMs) {
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      assert.deepEqual(await arrived(), new Set(keys));
    });
  });
}

function newMessage(fields: Partial<DeliveryMessage> = {}): DeliveryMessage {
  return {
    id: randomUUID(),
    integrationType: 'kafka:payments',
    eventType: 'payment.completed.v1',
    payload: { amount: 5 },
    sourceStreamId: 'paymenthub.payment.v1-core-1',
    sourceEventId: randomUUID(),
    tenantId: 'core',
    ...fields,
  };
}

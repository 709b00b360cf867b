import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../testing/assertions.ts';
import type { Destination } from '../delivery/destination.ts';
import { hasCode } from '../foundation/error.ts';
import { createLifecycle } from '../foundation/lifecycle.ts';
import { newMessage } from '../testing/conformance/outbox/fixture.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxDefinition } from './define-outbox.ts';
import { readOutboxEnvironment, type OutboxSettings } from './config/outbox-environment.ts';
import { startOutbox } from './run-standalone-outbox.ts';

const start = (definition: OutboxDefinition, env: Readonly<Record<string, string>> = {}) =>
  startOutbox(definition, { settings: readOutboxEnvironment(env), store: 'memory:' });

const hangs: Destination = (_message, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

test('WEBHOOK_TIMEOUT_MS limits a webhook, unless its settings have another limit', async () => {
  const destinations = { webhook: hangs, 'webhook:own': { send: hangs, timeoutMs: 30 } };
  await using outbox = await start({ destinations }, { WEBHOOK_TIMEOUT_MS: '20' });
  await outbox.ledger.enqueueMany([newMessage(), newMessage({ integrationType: 'webhook:own' })]);
  await eventually('both failed', async () => (await outbox.ledger.counts()).FAILED === 2);
  const messages = await outbox.ledger.list({}, { oldestFirst: true });
  const errors = messages.map(({ lastError }) => lastError);
  assert.deepEqual(errors, ['no response within 20 ms', 'no response within 30 ms']);
});

test('OUTBOX_MAX_ATTEMPTS is the default of every enqueued message, and a message may set its own', async () => {
  await using outbox = await start({ destinations: {} }, { OUTBOX_MAX_ATTEMPTS: '3' });
  assert.equal((await outbox.ledger.enqueue(newMessage())).maxAttempts, 3);
  assert.equal((await outbox.ledger.enqueue(newMessage({ maxAttempts: 7 }))).maxAttempts, 7);
});

test('a dead message is published once to OUTBOX_DEADLETTER_TOPIC, and a dead dead letter is not', async () => {
  const received: unknown[] = [];
  const kafka: Destination = async ({ integrationType, payload }) => {
    received.push([integrationType, payload['error']]);
    return { kind: 'dead', error: 'no' };
  };
  await using outbox = await start(
    { destinations: { kafka } },
    { OUTBOX_DEADLETTER_TOPIC: 'outbox.dead' },
  );
  await outbox.ledger.enqueue(newMessage({ integrationType: 'kafka:payments' }));
  await eventually('both are dead', async () => (await outbox.ledger.counts()).DEAD === 2);
  await outbox.whenDrained();
  assert.deepEqual(received, [
    ['kafka:payments', undefined],
    ['kafka:outbox.dead', 'no'],
  ]);

  // A replayed message may become dead again, and that is reported again.
  await outbox.ledger.replay({ integrationType: 'kafka:payments' });
  await eventually('it died again', async () => (await outbox.ledger.counts()).DEAD === 3);
});

test('another sender gets the options of the dispatcher, and stops before its destinations', async () => {
  const calls: string[] = [];
  let given: readonly [OutboxDispatcherOptions, OutboxSettings] | undefined;
  const audit: Destination & AsyncDisposable = Object.assign(async () => undefined, {
    [Symbol.asyncDispose]: async () => void calls.push('destination closed'),
  });
  const definition: OutboxDefinition = {
    destinations: { audit: { send: audit } },
    dispatcher: { concurrency: 3 },
    sender(options, settings) {
      given = [options, settings];
      return createLifecycle({
        start: async () => void calls.push('started'),
        stop: async () => void calls.push('stopped'),
      });
    },
  };
  const env = { OUTBOX_CLAIM_BATCH_SIZE: '7', OUTBOX_TICK_INTERVAL_MS: '9', REDIS_HOST: 'cache' };
  {
    await using outbox = await start(definition, env);
    await assert.rejects(outbox.whenDrained(), (error) => hasCode(error, 'NOT_SUPPORTED'));
    const [options, settings] = given ?? [];
    assert.deepEqual(
      [options?.batchSize, options?.tickIntervalMs, options?.concurrency],
      [7, 9, 3],
    );
    assert.equal(options?.ledger, outbox.ledger);
    assert.equal(settings?.queue, 'redis://cache:6379');
  }
  assert.deepEqual(calls, ['started', 'stopped', 'destination closed']);
});

test('opened resources are closed when a later step fails', async () => {
  const calls: string[] = [];
  const audit: Destination & AsyncDisposable = Object.assign(async () => undefined, {
    [Symbol.asyncDispose]: async () => void calls.push('closed'),
  });
  const sender = (): never => {
    throw new Error('no queue');
  };
  await assert.rejects(start({ destinations: { audit }, sender }), /no queue/);
  assert.deepEqual(calls, ['closed']);
});

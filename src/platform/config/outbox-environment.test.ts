import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { readOutboxEnvironment } from './outbox-environment.ts';

/** The variables of the outbox document, with its example values. */
const documented = {
  ESDB_CONNECTION_STRING: 'esdb+discover://node1:2113,node2:2113?tls=true',
  ESDB_SUBSCRIPTION_PREFIX: 'payment.',
  OUTBOX_CLAIM_BATCH_SIZE: '100',
  OUTBOX_MAX_ATTEMPTS: '10',
  OUTBOX_TICK_INTERVAL_MS: '1000',
  OUTBOX_DEADLETTER_TOPIC: 'outbox.dead',
  REDIS_HOST: 'localhost',
  REDIS_PORT: '6379',
  KAFKA_BROKERS: 'broker1:9092,broker2:9092',
  WEBHOOK_TIMEOUT_MS: '5000',
};

test('reads every variable of the document', () => {
  assert.deepEqual(readOutboxEnvironment(documented), {
    store: documented.ESDB_CONNECTION_STRING,
    outbox: undefined,
    queue: 'redis://localhost:6379',
    typePrefixes: ['payment.'],
    batchSize: 100,
    maxAttempts: 10,
    tickIntervalMs: 1_000,
    deadLetterTopic: 'outbox.dead',
    kafkaBrokers: ['broker1:9092', 'broker2:9092'],
    webhookTimeoutMs: 5_000,
  });
});

test('missing and empty variables have the defaults of the document, and name no server', () => {
  const empty = Object.fromEntries(Object.keys(documented).map((name) => [name, ' ']));
  for (const env of [{}, empty]) {
    assert.deepEqual(readOutboxEnvironment(env), {
      store: undefined,
      outbox: undefined,
      queue: undefined,
      typePrefixes: [],
      batchSize: 100,
      maxAttempts: 10,
      tickIntervalMs: 1_000,
      deadLetterTopic: undefined,
      kafkaBrokers: [],
      webhookTimeoutMs: 5_000,
    });
  }
});

test('MILLRACE_* variables have precedence over those of the document', () => {
  const env = {
    ...documented,
    MILLRACE_STORE: 'postgres://db/shop',
    MILLRACE_OUTBOX: 'sqlite:outbox.db',
    MILLRACE_QUEUE: 'redis://queue:6380',
  };
  const { store, outbox, queue } = readOutboxEnvironment(env);
  assert.deepEqual(
    [store, outbox, queue],
    ['postgres://db/shop', 'sqlite:outbox.db', 'redis://queue:6380'],
  );
});

test('prefixes are separated by commas, and a partial Redis address gets its defaults', () => {
  const { typePrefixes } = readOutboxEnvironment({
    ESDB_SUBSCRIPTION_PREFIX: 'payment., account.,',
  });
  assert.deepEqual(typePrefixes, ['payment.', 'account.']);
  assert.equal(readOutboxEnvironment({ REDIS_PORT: '7000' }).queue, 'redis://localhost:7000');
  assert.equal(readOutboxEnvironment({ REDIS_HOST: 'cache' }).queue, 'redis://cache:6379');
  assert.equal(readOutboxEnvironment({ REDIS_HOST: '::1' }).queue, 'redis://[::1]:6379');
});

test('an invalid value is reported with its name and the valid values', () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['OUTBOX_CLAIM_BATCH_SIZE', '0', /from 1 to 5000, not '0'/],
    ['OUTBOX_CLAIM_BATCH_SIZE', '1e3', /not '1e3'/],
    ['OUTBOX_MAX_ATTEMPTS', '-1', /from 1 to 1000/],
    ['OUTBOX_TICK_INTERVAL_MS', '1s', /from 1 to 3600000/],
    ['WEBHOOK_TIMEOUT_MS', '26000', /from 1 to 25000/],
    ['REDIS_PORT', '65536', /from 1 to 65535/],
    ['REDIS_HOST', 'redis://x', /a host, such as localhost/],
    ['KAFKA_BROKERS', 'broker1', /host:port,host:port/],
    ['OUTBOX_DEADLETTER_TOPIC', 'a b', /a topic, such as outbox.dead/],
    [
      'ESDB_CONNECTION_STRING',
      'localhost:2113',
      /engine 'localhost:' is not supported; supported: kurrentdb:/,
    ],
    ['MILLRACE_OUTBOX', 'mysql://x', /engine 'mysql:' is not supported/],
  ];
  for (const [name, value, problem] of cases) {
    assert.throws(
      () => readOutboxEnvironment({ [name]: value }),
      (error) => {
        assert.ok(hasCode(error, 'CONFIG_INVALID'));
        assert.ok(/^[A-Z_]+(?= |: )/.exec(error.message)?.[0] === name, error.message);
        assert.match(error.message, problem);
        assert.deepEqual(error.details, { fields: [name] });
        return true;
      },
    );
  }
});

test('all problems are reported together, without passwords', () => {
  const env = {
    OUTBOX_MAX_ATTEMPTS: 'many',
    WEBHOOK_TIMEOUT_MS: 'long',
    ESDB_CONNECTION_STRING: 'admin:hunter2@host',
    MILLRACE_STORE: 'app:hunter2@host',
  };
  assert.throws(
    () => readOutboxEnvironment(env),
    (error) => {
      assert.ok(hasCode(error, 'CONFIG_INVALID'));
      assert.doesNotMatch(error.message, /hunter2/);
      assert.deepEqual(error.details['fields'], [
        'MILLRACE_STORE',
        'ESDB_CONNECTION_STRING',
        'OUTBOX_MAX_ATTEMPTS',
        'WEBHOOK_TIMEOUT_MS',
      ]);
      return true;
    },
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoBulkWriteError, MongoNetworkError, MongoServerError } from 'mongodb';
import { hasCode } from '../../foundation/error.ts';
import { clientUrl, isDuplicate, isTransient, unavailable } from './connection.ts';

type BulkResult = ConstructorParameters<typeof MongoBulkWriteError>[1];

/** The form in which the driver wraps an error that does not come from the server. */
function bulkError(error: Error): MongoBulkWriteError {
  return new MongoBulkWriteError(error, {} as BulkResult);
}

const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

test('a lost connection is transient, however the driver wraps it', () => {
  for (const error of [
    new MongoNetworkError('connection lost'),
    reset,
    bulkError(new MongoNetworkError('connection lost')),
    bulkError(reset),
    new MongoServerError({ message: 'stepped down', code: 189 }),
    bulkError(new MongoServerError({ message: 'stepped down', code: 189 })),
  ]) {
    assert.ok(isTransient(error), String(error));
    const translated = unavailable(error);
    assert.ok(hasCode(translated, 'STORE_UNAVAILABLE'));
    assert.equal(translated.retryable, true);
  }
});

test('errors other than a lost connection are not transient', () => {
  for (const error of [
    new MongoServerError({ message: 'no', code: 13 }),
    bulkError(new MongoServerError({ message: 'no', code: 13 })),
    new Error('something else'),
    'not even an error',
  ]) {
    assert.equal(isTransient(error), false, String(error));
    assert.equal(unavailable(error).retryable, false);
  }
});

test('an error counts as a duplicate key only if there is no other error', () => {
  const taken = { code: 11_000 };
  const bulk = (writeErrors: readonly object[]): Error =>
    Object.assign(new Error('bulk'), { code: 11_000, writeErrors });
  assert.ok(isDuplicate(Object.assign(new Error('one'), taken)));
  assert.ok(isDuplicate(bulk([taken, taken])));
  assert.equal(isDuplicate(bulk([taken, { code: 13 }])), false);
  assert.equal(isDuplicate(reset), false);
});

test('options of the URL take precedence over the defaults', () => {
  const ours = { appName: 'millrace', maxPoolSize: '10' };
  assert.equal(clientUrl('mongodb://h', ours), 'mongodb://h/?appName=millrace&maxPoolSize=10');
  assert.equal(clientUrl('mongodb://h/db', ours), 'mongodb://h/db?appName=millrace&maxPoolSize=10');
  assert.equal(
    clientUrl('mongodb://u:p@h1,h2/db?maxpoolsize=3&tls=true', ours),
    'mongodb://u:p@h1,h2/db?maxpoolsize=3&tls=true&appName=millrace',
  );
});

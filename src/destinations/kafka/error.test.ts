import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MultipleErrors, NetworkError, ResponseError } from '@platformatic/kafka';
import { classifyKafkaError, outcomeOfCode, outcomeOfFailure, resultsInError } from './error.ts';

/** Builds the error that the driver throws for a Produce response (API 0). */
function responseError(codes: Readonly<Record<number, number>>): ResponseError {
  const partitionResponses = Object.entries(codes).map(([index, errorCode]) => ({
    index: Number(index),
    errorCode,
    baseOffset: errorCode === 0 ? 40n : -1n,
  }));
  const errors = partitionResponses
    .filter(({ errorCode }) => errorCode !== 0)
    .map(({ index, errorCode }) => [`/${index}`, [errorCode, null]] as const);
  const response = { responses: [{ name: 't', partitionResponses }] };
  return new ResponseError(
    0,
    11,
    Object.fromEntries(errors) as Record<string, [number, null]>,
    response,
  );
}

test('classifies error codes as permanent, transient or ambiguous', () => {
  for (const [code, kind] of [
    ['MESSAGE_TOO_LARGE', 'permanent'],
    ['INVALID_RECORD', 'permanent'],
    ['UNKNOWN_TOPIC_OR_PARTITION', 'transient'],
    ['TOPIC_AUTHORIZATION_FAILED', 'transient'],
    ['NOT_LEADER_OR_FOLLOWER', 'transient'],
    ['NOT_ENOUGH_REPLICAS', 'transient'],
    ['NEVER_HEARD_OF', 'transient'],
    ['REQUEST_TIMED_OUT', 'ambiguous'],
    ['NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'ambiguous'],
  ] as const) {
    assert.equal(classifyKafkaError(code), kind, code);
  }
  assert.deepEqual(outcomeOfCode('MESSAGE_TOO_LARGE', 'x'), { kind: 'dead', error: 'x' });
  assert.deepEqual(outcomeOfCode('NOT_LEADER_OR_FOLLOWER', 'x'), { kind: 'retry', error: 'x' });
  const unclear = { kind: 'retry', error: 'x', ambiguous: true };
  assert.deepEqual(outcomeOfCode('REQUEST_TIMED_OUT', 'x'), unclear);
});

test('each partition gets the result of its response', () => {
  const results = resultsInError(
    new MultipleErrors('failed', [responseError({ 0: 10, 1: 0, 2: 6 })]),
  );
  assert.deepEqual(results.get('t:0'), {
    kind: 'rejected',
    code: 'MESSAGE_TOO_LARGE',
    error: 'MESSAGE_TOO_LARGE: rejected',
  });
  assert.deepEqual(results.get('t:1'), { kind: 'stored', offset: 40n });
  const last = results.get('t:2');
  assert.ok(last?.kind === 'rejected' && last.code === 'NOT_LEADER_OR_FOLLOWER');
});

test('a record stored by the first try stays stored, whatever a retry of the driver reports', () => {
  const tries = new MultipleErrors('produce failed 2 times', [
    responseError({ 0: 0, 1: 6 }),
    responseError({ 0: 46, 1: 10 }),
  ]);
  const results = resultsInError(new MultipleErrors('failed', [tries]));
  assert.equal(results.get('t:0')?.kind, 'stored');
  const second = results.get('t:1');
  assert.ok(second?.kind === 'rejected' && second.code === 'MESSAGE_TOO_LARGE');
});

test('reads the offsets of brokers that stored all records', () => {
  const produced = { offsets: [{ topic: 't', partition: 3, offset: 7n }] };
  const error = new MultipleErrors('failed', [new NetworkError('Connection closed')], { produced });
  assert.deepEqual(resultsInError(error).get('t:3'), { kind: 'stored', offset: 7n });
});

test('a failure is ambiguous once records were sent, and its message names the cause', () => {
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:9092');
  const network = new NetworkError('Connection failed', { cause });
  const before = outcomeOfFailure(new MultipleErrors('Cannot connect to any broker.', [network]));
  assert.equal(before.ambiguous, undefined);
  assert.match(before.error, /ECONNREFUSED/);
  const during = outcomeOfFailure(
    new MultipleErrors('Producing messages failed.', [network], { produced: {} }),
  );
  assert.equal(during.ambiguous, true);
  assert.equal(outcomeOfFailure('odd').error, 'odd');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rejectionOf, unavailable } from './errors.ts';

const failure = (message: string, type?: string): Error =>
  Object.assign(new Error(message), type === undefined ? {} : { type });

test('an outage may be retried: no node, a node that starts, a lost connection', () => {
  for (const error of [
    failure('Failed to discover after 10 attempts.'),
    failure('2 UNKNOWN: Server Is Not Ready', 'unknown'),
    failure('14 UNAVAILABLE: No connection established. Last error: ECONNREFUSED', 'unavailable'),
    failure('4 DEADLINE_EXCEEDED', 'deadline-exceeded'),
    failure('transport error', 'unknown'),
  ]) {
    const { code, retryable } = unavailable(error);
    assert.deepEqual([code, retryable], ['STORE_UNAVAILABLE', true], error.message);
  }
});

test('a wrong set-up is no outage, and the error says what to change', () => {
  const last = '14 UNAVAILABLE: No connection established. Last error: ';
  for (const [message, remedy] of [
    [
      `${last}The property 'options.servername' Setting the TLS ServerName to an IP address is not permitted.`,
      /needs a host name/,
    ],
    [`${last}Error: unable to verify the first certificate`, /tlsCAFile/],
    [`${last}Error: self-signed certificate in certificate chain`, /tlsCAFile/],
    [`${last}Error: SSL routines:tls_validate_record_header:wrong version number`, /tls=false/],
    ['16 UNAUTHENTICATED: missing or invalid credentials', /the user or the password/],
  ] as const) {
    const error = unavailable(failure(message, 'unavailable'));
    assert.deepEqual([error.code, error.retryable], ['CONFIG_INVALID', false], message);
    assert.match(error.message, remedy);
  }
});

test('a missing right is final, and an append that is too large is a wrong input', () => {
  const denied = unavailable(failure('AccessDeniedError', 'access-denied'));
  assert.deepEqual([denied.code, denied.retryable], ['STORE_UNAVAILABLE', false]);
  assert.match(denied.message, /check user and password/);
  const large = unavailable(failure('too large', 'maximum-append-size-exceeded'));
  assert.equal(large.code, 'APPEND_INVALID');
});

test('a rejected append is one, whatever the name of its stream is', () => {
  const conflict = failure('conflict in stream tls.certificate.v1-1', 'wrong-expected-version');
  for (const [actualState, actual] of [
    [7n, 7],
    ['no_stream', -1],
  ] as const) {
    const error = unavailable(Object.assign(conflict, { actualState }));
    assert.deepEqual(rejectionOf(error), { kind: 'conflict', actual });
  }
  const deleted = unavailable(failure('stream tls.certificate.v1-1 is deleted', 'stream-deleted'));
  assert.deepEqual(rejectionOf(deleted), { kind: 'deleted' });
  assert.equal(rejectionOf(unavailable(failure('connection reset'))), undefined);
});

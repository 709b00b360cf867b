import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../../foundation/error.ts';
import { RpcError, status, trailerText } from './rpc-error.ts';
import { toRpcError } from './to-rpc-error.ts';

const limits = { appendBytesMax: 1_000 };

test('a conflict has the stream and both versions, and -1 for an unknown stream', () => {
  const conflict = (actual: number) =>
    toRpcError(
      new MillraceError('VERSION_CONFLICT', 'x', {
        details: { stream: 'a-1', expected: 'exists', actual },
      }),
      limits,
    ).parts;
  assert.deepEqual(
    { ...conflict(7), cause: undefined },
    {
      status: status.failedPrecondition,
      exception: 'wrong-expected-version',
      trailers: { 'stream-name': 'a-1', 'expected-version': '-4', 'actual-version': '7' },
      cause: undefined,
    },
  );
  assert.equal(conflict(-1).trailers?.['actual-version'], '-1');
});

test('each error of the store has its status', () => {
  const statusOf = (code: ConstructorParameters<typeof MillraceError>[0]) =>
    toRpcError(new MillraceError(code, 'x'), limits).parts.status;
  assert.equal(statusOf('FILTER_INVALID'), status.invalidArgument);
  assert.equal(statusOf('STORE_UNAVAILABLE'), status.unavailable);
  assert.equal(statusOf('STREAM_DELETED'), status.failedPrecondition);
  assert.equal(statusOf('PAYLOAD_TOO_LARGE'), status.invalidArgument);
  assert.equal(statusOf('NOT_SUPPORTED'), status.unimplemented);
  assert.equal(statusOf('STORE_CORRUPT'), status.internal);
});

test('an unexpected error reveals no details to the client', () => {
  const rpcError = toRpcError(new Error('password is hunter2'), limits);
  assert.equal(rpcError.parts.status, status.internal);
  assert.ok(!rpcError.message.includes('hunter2'));
  const own = new RpcError('mine', { status: status.notFound });
  assert.equal(toRpcError(own, limits), own);
});

test('trailers are printable ASCII, and ASCII is unchanged', () => {
  assert.equal(trailerText('orders-1 100%'), 'orders-1 100%');
  assert.equal(trailerText('größe-1'), 'gr%C3%B6%C3%9Fe-1');
  assert.equal(trailerText('a\u0000b\ud800'), 'a%00b%EF%BF%BD');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WireReadRequest } from '../protocol/streams-messages.ts';
import { RpcError, status } from '../rpc-error.ts';
import { planRead } from './read-plan.ts';
import { parseLink } from './resolve-links.ts';

const long = (value: number) => ({ low: value | 0, high: 0, unsigned: true });
const u64Max = { low: -1, high: -1, unsigned: true };
type Options = NonNullable<WireReadRequest['options']>;

function plan(options: Partial<Options>) {
  return planRead({ options: { readDirection: 0, resolveLinks: false, ...options } });
}

const stream = (name: string, more: object = {}) => ({
  stream: { streamIdentifier: { streamName: Buffer.from(name) }, ...more },
});

test('a read starts at a number, at the start or at the end of the stream', () => {
  const count = { count: long(5) };
  assert.equal(plan({ ...stream('a-1', { revision: long(3) }), ...count }).from, 3);
  assert.equal(plan({ ...stream('a-1', { revision: u64Max }), ...count }).from, 'end');
  assert.equal(plan({ ...stream('a-1', { start: {} }), ...count }).from, 'start');
  assert.equal(plan({ all: { end: {} }, ...count }).from, 'end');
  const position = { commitPosition: long(7), preparePosition: long(7) };
  assert.equal(plan({ all: { position }, ...count }).from, 7);
  assert.equal(plan({ all: {}, readDirection: 1, ...count }).from, 'end');
  assert.equal(plan({ all: {}, count: u64Max }).limit, Number.MAX_SAFE_INTEGER);
});

test('streams of unsupported projections are rejected instead of empty', () => {
  for (const name of ['$streams', '$category-orders', '$bc-1']) {
    assert.throws(
      () => plan({ ...stream(name), count: long(1) }),
      (error) => error instanceof RpcError && error.parts.status === status.unimplemented,
    );
  }
  assert.equal(plan({ ...stream('$streamsX'), count: long(1) }).source.kind, 'stream');
});

test('index streams are views of all events', () => {
  const source = (name: string) => plan({ ...stream(name), count: long(1) }).source;
  assert.deepEqual(source('$ce-orders'), {
    kind: 'index',
    stream: '$ce-orders',
    filter: { category: 'orders' },
  });
  assert.deepEqual(source('$et-order.placed.v1'), {
    kind: 'index',
    stream: '$et-order.placed.v1',
    filter: { types: ['order.placed.v1'], system: true },
  });
  assert.deepEqual(source('$ce-'), { kind: 'stream', stream: '$ce-' });
});

test('a pattern takes precedence over prefixes, and checkpoints follow window and multiplier', () => {
  const filtered = (filter: Options['filter']) =>
    plan({ all: {}, subscription: {}, filter }).source;
  assert.deepEqual(
    filtered({ eventType: { regex: '^a', prefix: ['b'] }, checkpointIntervalMultiplier: 2 }),
    { kind: 'all', filter: { system: true, typePattern: '^a' }, checkpointEvery: 64 },
  );
  assert.deepEqual(
    filtered({
      streamIdentifier: { regex: '', prefix: ['b', 'c'] },
      max: 10,
      checkpointIntervalMultiplier: 0,
    }),
    { kind: 'all', filter: { system: true, streamPrefixes: ['b', 'c'] }, checkpointEvery: 10 },
  );
});

test('invalid requests are rejected', () => {
  const rejected: readonly Partial<Options>[] = [
    {},
    { all: {} },
    { count: long(1) },
    { all: {}, subscription: {}, readDirection: 1 },
    { all: {}, count: long(1), filter: { checkpointIntervalMultiplier: 1 } },
    {
      all: {},
      subscription: {},
      filter: {
        eventType: { regex: 'a', prefix: [] },
        max: 0,
        checkpointIntervalMultiplier: 1,
      },
    },
  ];
  for (const options of rejected) assert.throws(() => plan(options), RpcError);
  assert.throws(() => planRead({}), RpcError);
});

test('parses links to streams with any name', () => {
  assert.deepEqual(parseLink('12@a@b-1'), { revision: 12, stream: 'a@b-1' });
  for (const text of ['', '@a', '1@', 'x@a', '12']) assert.equal(parseLink(text), undefined);
});

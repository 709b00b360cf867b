import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcError, status } from '../rpc-error.ts';
import { parseNumber, showNumber } from './group-records.ts';
import { parseSettings } from './group-settings.ts';
import type { WireSettings } from '../protocol/persistent-messages.ts';

const long = (low: number) => ({ low, high: 0, unsigned: false });
const wire: WireSettings = {
  resolveLinks: false,
  revision: long(0),
  extraStatistics: false,
  messageTimeoutMs: 100,
  checkpointAfterMs: 200,
  maxRetryCount: 10,
  minCheckpointCount: 10,
  maxCheckpointCount: 1_000,
  maxSubscriberCount: 0,
  liveBufferSize: 500,
  readBatchSize: 20,
  historyBufferSize: 500,
  namedConsumerStrategy: 1,
  consumerStrategy: '',
};
const key = { source: 'orders-1', group: 'g' };
const parse = (more: Partial<WireSettings>) =>
  parseSettings({ ...wire, ...more }, { from: 'start', after: -1 }, key);

test('a strategy is set by number or by name, and the name takes precedence', () => {
  const names = [0, 1, 2].map((number) => parse({ namedConsumerStrategy: number }).strategy);
  assert.deepEqual(names, ['DispatchToSingle', 'RoundRobin', 'Pinned']);
  const named = parse({ consumerStrategy: 'PinnedByCorrelation', namedConsumerStrategy: 0 });
  assert.equal(named.strategy, 'PinnedByCorrelation');
  assert.throws(() => parse({ consumerStrategy: 'Random' }), RpcError);
});

test('times are in milliseconds or in ticks', () => {
  const ticks = parse({
    messageTimeoutMs: undefined,
    messageTimeoutTicks: long(50_000),
    checkpointAfterMs: undefined,
    checkpointAfterTicks: long(20_000),
  });
  assert.deepEqual([ticks.messageTimeoutMs, ticks.checkpointAfterMs], [5, 2]);
});

test('invalid buffer sizes are rejected', () => {
  for (const bad of [
    { readBatchSize: 500 },
    { historyBufferSize: 1_000_000 },
    { maxRetryCount: -1 },
    { liveBufferSize: -5 },
  ]) {
    assert.throws(
      () => parse(bad),
      (error) =>
        error instanceof RpcError &&
        error.parts.status === status.internal &&
        error.parts.exception === 'persistent-subscription-failed' &&
        error.parts.trailers?.['stream-name'] === 'orders-1' &&
        error.parts.trailers['group-name'] === 'g',
    );
  }
  assert.equal(parse({ readBatchSize: 0 }).readBatchSize, 0);
});

test('numbers are shown as revisions, or as positions among all events', () => {
  for (const source of ['$all', 'orders-1']) {
    assert.equal(parseNumber(showNumber({ source }, 42)), 42);
  }
  assert.equal(showNumber({ source: '$all' }, -1), 'C:-1/P:-1');
  assert.equal(parseNumber('nonsense'), undefined);
});

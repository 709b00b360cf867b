import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisRisks } from './risks.ts';

const safe = {
  appendonly: 'yes',
  appendfsync: 'always',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
};

test('reports no risk with a sync at every write and no eviction', () => {
  assert.deepEqual(redisRisks(safe), []);
  assert.deepEqual(redisRisks({ ...safe, 'maxmemory-policy': 'allkeys-lru' }), []);
  assert.deepEqual(redisRisks({ ...safe, maxmemory: '1000000' }), []);
  assert.deepEqual(redisRisks({}), []);
});

test('names each setting that may lose data', () => {
  assert.deepEqual(redisRisks({ ...safe, appendonly: 'no' }), [
    { loses: 'all', setting: 'appendonly no' },
  ]);
  assert.deepEqual(redisRisks({ ...safe, appendfsync: 'everysec' }), [
    { loses: 'last', setting: 'appendfsync everysec' },
  ]);
  const full = { ...safe, maxmemory: '1000000', 'maxmemory-policy': 'volatile-lru' };
  assert.deepEqual(redisRisks(full), [{ loses: 'any', setting: 'maxmemory-policy volatile-lru' }]);
});

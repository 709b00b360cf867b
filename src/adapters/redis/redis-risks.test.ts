import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisRisks } from './redis-risks.ts';

const safe = {
  appendonly: 'yes',
  appendfsync: 'always',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
};

test('what is synced at every write and never evicted is no risk', () => {
  assert.deepEqual(redisRisks(safe), []);
  assert.deepEqual(redisRisks({ ...safe, 'maxmemory-policy': 'allkeys-lru' }), []);
  assert.deepEqual(redisRisks({ ...safe, maxmemory: '1000000' }), []);
  assert.deepEqual(redisRisks({}), []);
});

test('each setting that forgets is told by its name', () => {
  assert.deepEqual(redisRisks({ ...safe, appendonly: 'no' }), [
    { loses: 'all', setting: 'appendonly no' },
  ]);
  assert.deepEqual(redisRisks({ ...safe, appendfsync: 'everysec' }), [
    { loses: 'last', setting: 'appendfsync everysec' },
  ]);
  const full = { ...safe, maxmemory: '1000000', 'maxmemory-policy': 'volatile-lru' };
  assert.deepEqual(redisRisks(full), [{ loses: 'any', setting: 'maxmemory-policy volatile-lru' }]);
});

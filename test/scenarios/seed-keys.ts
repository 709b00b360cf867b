// Checks the Redis keys that the naming document gives for its currency and its payment.

import assert from 'node:assert/strict';
import { Redis } from 'ioredis';

export async function assertSeedKeys(url: string): Promise<void> {
  const redis = new Redis(url);
  try {
    const currencies = 'app:{core}:banking:currency:v1';
    assert.match((await redis.get(`${currencies}:USD`)) ?? '', /"code":"USD"/);
    assert.deepEqual(await redis.hgetall(`${currencies}:index:by-code`), { USD: 'USD' });
    assert.deepEqual(await redis.smembers(`${currencies}:set:all`), ['USD']);
    const payments = 'app:{core}:paymenthub:payment:v1';
    assert.match((await redis.get(`${payments}:p-made`)) ?? '', /"status":"completed"/);
    assert.deepEqual(await redis.smembers(`${payments}:set:completed`), ['p-made']);
    assert.equal(await redis.zcard(`${payments}:zset:by-updated`), 4);
  } finally {
    redis.disconnect();
  }
}

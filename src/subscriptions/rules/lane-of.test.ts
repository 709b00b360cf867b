import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { laneOf, shardOf } from './lane-of.ts';

test('a stream maps to one shard and one lane within their limits', () => {
  const count = fc.integer({ min: 1, max: 64 });
  fc.assert(
    fc.property(fc.string(), count, count, (stream, shards, lanes) => {
      const shard = shardOf(stream, shards);
      const lane = laneOf(stream, { shards, lanes });
      assert.ok(shard >= 0 && shard < shards && Number.isInteger(shard));
      assert.ok(lane >= 0 && lane < lanes && Number.isInteger(lane));
      assert.equal(laneOf(stream, { shards, lanes }), lane);
    }),
  );
});

test('streams spread evenly over shards, and over the lanes of each shard', () => {
  const streams = Array.from({ length: 20_000 }, (_, id) => `banking.account.v1-core-${id}`);
  const [shards, lanes] = [8, 8];
  const counts = new Map<string, number>();
  for (const stream of streams) {
    const lane = `${shardOf(stream, shards)}/${laneOf(stream, { shards, lanes })}`;
    counts.set(lane, (counts.get(lane) ?? 0) + 1);
  }
  const even = streams.length / (shards * lanes);
  assert.equal(counts.size, shards * lanes);
  for (const count of counts.values())
    assert.ok(count > even / 2 && count < even * 1.5, `${count}`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decideShards, type ShardLease } from './decide-shards.ts';

/** All processes decide in turn for several rounds. */
function settle(shards: number, rounds: readonly (readonly string[])[]): Map<number, string> {
  let owners = new Map<number, string>();
  for (const workers of rounds) {
    owners = new Map([...owners].filter(([, owner]) => workers.includes(owner)));
    for (let turn = 0; turn < 6; turn += 1) {
      for (const self of workers) {
        const leases = [...owners].map(([shard, owner]): ShardLease => ({
          shard,
          owner,
          remainingMs: 1,
        }));
        const { acquire, release } = decideShards({ shards, self, workers, leases });
        for (const shard of release) owners.delete(shard);
        for (const shard of acquire) owners.set(shard, self);
      }
    }
  }
  return owners;
}

test('as processes start and stop, every shard has an owner and every process a fair share', () => {
  const workers = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 16 }),
      fc.array(workers, { minLength: 1, maxLength: 6 }),
      (shards, rounds) => {
        const owners = settle(shards, rounds);
        assert.equal(owners.size, shards);
        const alive = rounds.at(-1) ?? [];
        for (const worker of alive) {
          const count = [...owners.values()].filter((owner) => owner === worker).length;
          assert.ok(count <= Math.ceil(shards / alive.length));
          assert.ok(count >= Math.floor(shards / alive.length));
        }
      },
    ),
  );
});

test('a shard with an expired lease is free', () => {
  const leases = [{ shard: 0, owner: 'gone', remainingMs: 0 }];
  assert.deepEqual(decideShards({ shards: 1, self: 'a', workers: [], leases }).acquire, [0]);
});

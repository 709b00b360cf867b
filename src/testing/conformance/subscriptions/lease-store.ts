import assert from 'node:assert/strict';
import { eventually } from '../../assertions.ts';
import { leaseMs, newName, acquireShard, takeOverShard, type StorageCases } from './fixture.ts';

export const leaseCases: StorageCases = {
  async 'one of several concurrent acquisitions succeeds, and the others get the remaining time'({
    storage,
  }) {
    const key = { subscription: newName(), shard: 0 };
    await storage.checkpoints.open(key.subscription, 1);
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, index) => storage.leases.acquire(key, `o${index}`, leaseMs)),
    );
    assert.equal(results.filter(({ kind }) => kind === 'acquired').length, 1);
    for (const result of results) {
      if (result.kind === 'held') assert.ok(result.retryInMs > 0 && result.retryInMs <= leaseMs);
    }
  },

  async 'the token increases with each owner, and an old token cannot renew'({ storage }) {
    const first = await acquireShard(storage);
    assert.equal(await storage.leases.renew(first, leaseMs), true);
    const second = await takeOverShard(storage, first);
    assert.ok(second.token > first.token);
    assert.equal(await storage.leases.renew(first, leaseMs), false);
    await storage.leases.release(first);
    assert.equal(await storage.leases.renew(second, leaseMs), true);
    const again = await storage.leases.acquire(first, 'third', leaseMs);
    assert.equal(again.kind, 'held');
  },

  async 'the last owner cannot renew a released lease'({ storage }) {
    const fence = await acquireShard(storage);
    await storage.leases.release(fence);
    assert.equal(await storage.leases.renew(fence, leaseMs), false);
    const next = await storage.leases.acquire(fence, 'next', leaseMs);
    assert.ok(next.kind === 'acquired' && next.token > fence.token);
  },

  async 'tokens continue above a token seen in another store'({ storage }) {
    const key = { subscription: newName(), shard: 0 };
    await storage.checkpoints.open(key.subscription, 1);
    const first = await storage.leases.acquire(key, 'a', leaseMs, { above: 41 });
    assert.ok(first.kind === 'acquired' && first.token > 41);
    await storage.leases.release({ ...key, token: first.token });
    const second = await storage.leases.acquire(key, 'b', leaseMs, { above: 7 });
    assert.ok(second.kind === 'acquired' && second.token > first.token);
  },

  async 'the token sequence continues after a lease expires'({ storage }) {
    const key = { subscription: newName(), shard: 0 };
    await storage.checkpoints.open(key.subscription, 1);
    let last = 0;
    for (const owner of ['a', 'b', 'c']) {
      await eventually(`${owner} gets it`, async () => {
        const lease = await storage.leases.acquire(key, owner, 20);
        if (lease.kind === 'held') return false;
        assert.ok(lease.token > last);
        last = lease.token;
        return true;
      });
    }
  },

  async 'an expired lease can be acquired by others'({ storage }) {
    const key = { subscription: newName(), shard: 0 };
    await storage.checkpoints.open(key.subscription, 1);
    assert.equal((await storage.leases.acquire(key, 'dying', 40)).kind, 'acquired');
    await eventually(
      'another process takes over',
      async () => (await storage.leases.acquire(key, 'next', leaseMs)).kind === 'acquired',
    );
  },

  async 'renewing excludes others'({ storage }) {
    const key = { subscription: newName(), shard: 0 };
    await storage.checkpoints.open(key.subscription, 1);
    const lease = await storage.leases.acquire(key, 'owner', 1_000);
    const token = lease.kind === 'acquired' ? lease.token : 0;
    assert.equal(await storage.leases.renew({ ...key, token }, leaseMs), true);
    const result = await storage.leases.acquire(key, 'other', leaseMs);
    assert.ok(result.kind === 'held' && result.retryInMs > 1_000);
  },

  async 'lists the owner and remaining time of each shard'({ storage }) {
    const name = newName();
    await storage.checkpoints.open(name, 2);
    await storage.leases.acquire({ subscription: name, shard: 0 }, 'a', leaseMs);
    await storage.leases.acquire({ subscription: name, shard: 1 }, 'b', leaseMs);
    const leases = await storage.leases.list(name);
    assert.deepEqual(
      leases.map(({ shard, owner }) => [shard, owner]),
      [
        [0, 'a'],
        [1, 'b'],
      ],
    );
    assert.ok(leases.every(({ remainingMs }) => remainingMs > 1_000 && remainingMs <= leaseMs));
  },

  async 'lists the active processes'({ storage: { leases } }) {
    const name = newName();
    assert.deepEqual(await leases.announce(name, 'a', leaseMs), ['a']);
    assert.deepEqual(await leases.announce(name, 'b', leaseMs), ['a', 'b']);
    await leases.announce(name, 'b', 30);
    await eventually(
      'b is forgotten',
      async () => (await leases.announce(name, 'a', leaseMs)).length === 1,
    );
    await leases.announce(name, 'c', leaseMs);
    await leases.leave(name, 'a');
    assert.deepEqual(await leases.announce(name, 'c', leaseMs), ['c']);
  },

  async 'lists the active processes with their remaining time, without adding one'({
    storage: { leases },
  }) {
    const name = newName();
    const names = async (): Promise<readonly string[]> =>
      (await leases.workers(name)).map(({ worker }) => worker);
    assert.deepEqual(await names(), []);
    const described = '{"pid":2}';
    await leases.announce(name, described, leaseMs);
    await leases.announce(newName(), 'other', leaseMs);
    const [found] = await leases.workers(name);
    assert.equal(found?.worker, described);
    assert.ok(found.remainingMs > leaseMs / 2 && found.remainingMs <= leaseMs);
    await leases.announce(name, 'dying', 30);
    await eventually('it is forgotten', async () => (await names()).join('') === described);
    await leases.leave(name, described);
    assert.deepEqual(await names(), []);
  },

  'another process sees the lease': {
    needs: 'crossProcess',
    async run({ storage, fixture }) {
      const fence = await acquireShard(storage);
      const second = await fixture.second?.();
      assert.ok(second !== undefined, 'the fixture has no second connection');
      assert.equal((await second.leases.acquire(fence, 'other', leaseMs)).kind, 'held');
      assert.equal((await second.leases.list(fence.subscription))[0]?.owner, 'owner');
      await storage.leases.release(fence);
      const next = await second.leases.acquire(fence, 'other', leaseMs);
      assert.ok(next.kind === 'acquired' && next.token > fence.token);
      assert.equal(await storage.leases.renew(fence, leaseMs), false);
    },
  },
};

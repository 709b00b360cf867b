import assert from 'node:assert/strict';
import {
  assertLost,
  at,
  newLetter,
  newName,
  acquireShard,
  takeOverShard,
  type StorageCases,
} from './fixture.ts';

export const checkpointCases: StorageCases = {
  async 'a new subscription has no position, and is not paused'({ storage: { checkpoints } }) {
    const name = newName();
    const fresh = { subscription: name, shards: 3, paused: false, filter: undefined };
    const positions = [undefined, undefined, undefined];
    assert.deepEqual(await checkpoints.open(name, 3), { ...fresh, positions });
    assert.deepEqual(await checkpoints.load({ subscription: name, shard: 1 }), {
      position: undefined,
      done: [],
      blocked: [],
    });
  },

  async 'opening a known subscription changes nothing'({ storage: { checkpoints } }) {
    const name = newName();
    await checkpoints.open(name, 3);
    assert.equal((await checkpoints.open(name, 8)).shards, 3);
    await checkpoints.setPaused(name, true);
    const filter = { types: ["it's.opened.v1"], tenant: 'core' };
    const again = await checkpoints.open(name, 3, filter);
    assert.deepEqual([again.paused, again.filter], [true, filter]);
    assert.equal((await checkpoints.open(name, 3)).filter, undefined);
    assert.equal(await checkpoints.get(newName()), undefined);
  },

  async 'stores a checkpoint per shard'({ storage }) {
    const { checkpoints } = storage;
    const name = newName();
    await checkpoints.open(name, 2);
    const fence = await acquireShard(storage, name, 1);
    await checkpoints.save(fence, at(41));
    await checkpoints.save(fence, at(2 ** 40));
    assert.equal((await checkpoints.load(fence)).position, at(2 ** 40));
    assert.deepEqual((await checkpoints.get(name))?.positions, [undefined, at(2 ** 40)]);
    assert.ok((await checkpoints.list()).some(({ subscription }) => subscription === name));
  },

  async 'a former owner changes nothing'({ storage }) {
    const late = await acquireShard(storage);
    const fence = await takeOverShard(storage, late);
    await storage.checkpoints.save(fence, at(5));
    await assertLost(() => storage.checkpoints.save(late, at(9)));
    await assertLost(() => storage.settle(late, { kind: 'delivered', positions: [at(6)] }));
    const { position, done } = await storage.checkpoints.load(fence);
    assert.deepEqual([position, done], [at(5), []]);
  },

  async 'a token of an external lease store is valid once it was raised'({ storage }) {
    const { checkpoints, tokens } = storage;
    const key = { subscription: newName(), shard: 0 };
    await checkpoints.open(key.subscription, 1);
    assert.equal(await tokens.current(key), 0);
    const late = { ...key, token: 7 };
    await assertLost(() => checkpoints.save(late, at(1)));
    assert.equal(await tokens.raise(late), true);
    await checkpoints.save(late, at(5));
    // An equal token is not higher: only one of two owners with the same token owns the shard.
    assert.equal(await tokens.raise(late), false);
    assert.equal(await tokens.raise({ ...key, token: 6 }), false);
    const next = { ...key, token: 9 };
    assert.equal(await tokens.raise(next), true);
    assert.equal(await tokens.current(key), 9);
    await assertLost(() => checkpoints.save(late, at(8)));
    await assertLost(() => storage.settle(late, { kind: 'delivered', positions: [at(6)] }));
    const { position, done } = await checkpoints.load(key);
    assert.deepEqual([position, done], [at(5), []]);
  },

  async 'remembers events done above the checkpoint until the checkpoint passes them'({ storage }) {
    const fence = await acquireShard(storage);
    const { checkpoints } = storage;
    const settle = (...positions: number[]) =>
      storage.settle(fence, { kind: 'delivered', positions: positions.map(at) });
    assert.equal(await settle(11, 12), 'settled');
    assert.equal(await settle(15), 'settled');
    assert.deepEqual((await checkpoints.load(fence)).done.toSorted(), [at(11), at(12), at(15)]);
    await checkpoints.save(fence, at(12));
    assert.deepEqual((await checkpoints.load(fence)).done, [at(15)]);
  },

  async 'settling again is reported as a duplicate and changes nothing'({ storage }) {
    const fence = await acquireShard(storage);
    await storage.settle(fence, { kind: 'delivered', positions: [at(2)] });
    const again = { kind: 'delivered', positions: [at(1), at(2)] } as const;
    assert.equal(await storage.settle(fence, again), 'duplicate');
    assert.deepEqual((await storage.checkpoints.load(fence)).done, [at(2)]);
  },

  async 'a subscription stays paused until it is resumed'({ storage: { checkpoints } }) {
    const name = newName();
    await checkpoints.open(name, 1);
    assert.equal(await checkpoints.setPaused(name, true), true);
    assert.equal((await checkpoints.get(name))?.paused, true);
    await checkpoints.setPaused(name, false);
    assert.equal((await checkpoints.get(name))?.paused, false);
    assert.equal(await checkpoints.setPaused(newName(), true), false);
  },

  'another process sees the progress': {
    needs: 'crossProcess',
    async run({ storage, fixture }) {
      const fence = await acquireShard(storage);
      const second = await fixture.second?.();
      assert.ok(second !== undefined, 'the fixture has no second connection');
      await storage.settle(fence, { kind: 'delivered', positions: [at(4)] });
      assert.equal((await second.checkpoints.load(fence)).done.length, 1);
    },
  },

  async 'a reset moves every shard, revokes its owner and clears the marks of events that are processed again'({
    storage,
  }) {
    const fence = await acquireShard(storage);
    const { checkpoints, deadLetters, waiting } = storage;
    await checkpoints.save(fence, at(20));
    await storage.settle(fence, { kind: 'delivered', positions: [at(22)] });
    const parked = { parked: true, position: at(8), stream: 'a.b.v1-core-1' };
    const { letter } = await deadLetters.add(fence, newLetter(fence, parked));
    const below = { parked: true, position: at(3), stream: 'a.b.v1-core-2' };
    const { letter: older } = await deadLetters.add(fence, newLetter(fence, below));
    assert.equal(await checkpoints.reset(fence.subscription, at(5), { by: 'ada', atMs: 1 }), true);
    await assertLost(() => checkpoints.save(fence, at(30)));
    assert.deepEqual(await checkpoints.load(fence), {
      position: at(5),
      done: [],
      blocked: [older.stream],
    });
    assert.equal(await waiting.count(fence.subscription), 1);
    assert.equal((await deadLetters.get(letter.id))?.status, 'discarded');
    assert.equal((await deadLetters.get(older.id))?.status, 'pending');
    assert.equal(await checkpoints.reset(newName(), at(0), { by: 'ada', atMs: 1 }), false);
  },
};

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  assertLost,
  at,
  newLetter,
  acquireShard,
  takeOverShard,
  type StorageCases,
  type StorageContext,
} from './fixture.ts';
import type { Fence, Settlement } from '../../../subscriptions/subscription-storage.ts';

const delivered = (...positions: number[]) =>
  ({ kind: 'delivered', positions: positions.map(at) }) as const;

async function withEffect({ storage, fixture }: StorageContext, fence: Fence, key: string) {
  const effect = await storage.begin(fence);
  await fixture.effects?.write(effect.transaction, key);
  return effect;
}

const countOf = ({ fixture }: StorageContext, key: string): Promise<number> =>
  fixture.effects?.count(key) ?? Promise.resolve(-1);

export const transactionCases: StorageCases = {
  'effect and mark commit together': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const fence = await acquireShard(storage);
      const key = randomUUID();
      const effect = await withEffect(context, fence, key);
      assert.equal(await countOf(context, key), 0);
      assert.equal(await effect.commit(delivered(3)), 'settled');
      assert.equal(await countOf(context, key), 1);
      assert.deepEqual((await storage.checkpoints.load(fence)).done, [at(3)]);
    },
  },

  'effect, mark and checkpoint commit together': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const fence = await acquireShard(storage);
      const key = randomUUID();
      const settlement: Settlement = { ...delivered(3, 5), checkpoint: at(4) };
      await (await withEffect(context, fence, key)).rollback();
      assert.equal((await storage.checkpoints.load(fence)).position, undefined);
      assert.equal(await (await withEffect(context, fence, key)).commit(settlement), 'settled');
      const { position, done } = await storage.checkpoints.load(fence);
      assert.deepEqual([position, done], [at(4), [at(5)]]);
      // Retry after a lost response, for events below and above the checkpoint.
      for (const again of [delivered(3), delivered(5), { ...settlement, checkpoint: at(9) }]) {
        assert.equal(await (await withEffect(context, fence, key)).commit(again), 'duplicate');
      }
      assert.equal((await storage.checkpoints.load(fence)).position, at(4));
      assert.equal(await countOf(context, key), 1);
    },
  },

  'a late checkpoint does not undo a higher one': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const fence = await acquireShard(storage);
      const key = randomUUID();
      const commit = async (position: number, checkpoint: number) =>
        (await withEffect(context, fence, key)).commit({
          ...delivered(position),
          checkpoint: at(checkpoint),
        });
      assert.equal(await commit(8, 8), 'settled');
      await storage.checkpoints.save(fence, at(3));
      assert.equal(await commit(7, 6), 'settled');
      const { position, done } = await storage.checkpoints.load(fence);
      assert.deepEqual([position, done], [at(8), []]);
    },
  },

  'a former owner moves no checkpoint with its effect': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const late = await acquireShard(storage);
      const key = randomUUID();
      const effect = await withEffect(context, late, key);
      const fence = await takeOverShard(storage, late);
      await assertLost(() => effect.commit({ ...delivered(3), checkpoint: at(3) }));
      await effect.rollback();
      assert.equal(await countOf(context, key), 0);
      assert.equal((await storage.checkpoints.load(fence)).position, undefined);
    },
  },

  'a rollback leaves nothing': {
    needs: 'transactions',
    async run(context) {
      const fence = await acquireShard(context.storage);
      const key = randomUUID();
      for (const why of [undefined, 'late'] as const) {
        const effect = await withEffect(context, fence, key);
        await effect.rollback(why);
      }
      assert.equal(await countOf(context, key), 0);
      assert.deepEqual((await context.storage.checkpoints.load(fence)).done, []);
    },
  },

  'a processed event has no second effect': {
    needs: 'transactions',
    async run(context) {
      const fence = await acquireShard(context.storage);
      const key = randomUUID();
      await (await withEffect(context, fence, key)).commit(delivered(3));
      const again = await withEffect(context, fence, key);
      assert.equal(await again.commit(delivered(3)), 'duplicate');
      assert.equal(await countOf(context, key), 1);
    },
  },

  'an owner that lost its lease during the transaction has no effect': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const late = await acquireShard(storage);
      const key = randomUUID();
      const effect = await withEffect(context, late, key);
      const fence = await takeOverShard(storage, late);
      await assertLost(() => effect.commit(delivered(3)));
      await effect.rollback();
      assert.equal(await countOf(context, key), 0);
      assert.deepEqual((await storage.checkpoints.load(fence)).done, []);
    },
  },

  'the effect of a replay commits together with closing its dead letter': {
    needs: 'transactions',
    async run(context) {
      const { storage } = context;
      const fence = await acquireShard(storage);
      const { letter } = await storage.deadLetters.add(fence, newLetter(fence, { parked: true }));
      const { id, stream, position, eventId } = letter;
      const key = randomUUID();
      const drained: Settlement = { kind: 'drained', stream, position, eventId, atMs: 1 };
      await (await withEffect(context, fence, key)).rollback();
      assert.equal((await storage.deadLetters.get(id))?.status, 'pending');
      assert.equal(await (await withEffect(context, fence, key)).commit(drained), 'settled');
      assert.equal((await storage.deadLetters.get(id))?.status, 'replayed');
      assert.equal(await (await withEffect(context, fence, key)).commit(drained), 'duplicate');
      assert.equal(await countOf(context, key), 1);
    },
  },

  'several transactions may be open at once': {
    needs: 'transactions',
    async run(context) {
      const fence = await acquireShard(context.storage);
      const key = randomUUID();
      await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const effect = await withEffect(context, fence, key);
          assert.equal(await effect.commit(delivered(index + 1)), 'settled');
        }),
      );
      assert.equal(await countOf(context, key), 20);
    },
  },
};

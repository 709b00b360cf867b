// Stream mode beside everything else: pauses, purges, lists, changes of the mode, and transactions that commit
// late.

import assert from 'node:assert/strict';
import {
  claim as claimSingly,
  future,
  leaseMs,
  newMessage,
  past,
  rejectsWith,
  type LedgerCases,
} from './ledger-fixture.conformance.ts';
import type { EnqueueOutboxProps, OutboxMessage } from './outbox-message.ts';
import type { LaneBatch } from './outbox-streams.ts';
import {
  acquire,
  bytesMax,
  counted,
  declared,
  enqueue,
  failed,
  fetchFrom,
  message,
  numbers,
  only,
  settle,
  statuses,
  theBatch,
  type,
} from './streams-fixture.conformance.ts';

export const streamOperatingCases: LedgerCases = {
  'a paused destination gives nothing out; what is out comes to its end': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    await enqueue(ledger, message(1), message(2));
    const lane = await only(ledger);
    const batch = await theBatch(ledger, lane, 1);
    await ledger.pause(type, 'operator');
    assert.equal(await settle(ledger, batch), 'settled');
    assert.deepEqual(await fetchFrom(ledger, [lane]), []);
    await ledger.resume(type);
    assert.deepEqual(numbers(await fetchFrom(ledger, [lane])), [2]);
  },

  'sent messages are purged by age, dead and waiting ones are not': async (_opened, ledger) => {
    await declared(ledger);
    const items = [1, 2, 3, 4, 5].map((n) => message(n));
    const ids = await enqueue(ledger, ...items);
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane, 4), (n, position) => {
      if (n === 2) return { kind: 'dead', position, error: 'no' };
      return n === 3 ? failed(position, future) : undefined;
    });
    assert.equal(await ledger.purge(past), 0);
    assert.equal(await ledger.purge(future, 1), 1);
    assert.equal(await ledger.purge(future), 1);
    assert.equal(await ledger.purge(future), 0);
    assert.deepEqual(await statuses(ledger, ids), [
      undefined,
      'DEAD',
      'FAILED',
      undefined,
      'PENDING',
    ]);
    assert.equal((await ledger.enqueue(items[0] as EnqueueOutboxProps)).isNew, true);
  },

  'sent messages are archived by age, dead and waiting ones are not': async (_opened, ledger) => {
    await declared(ledger);
    const ids = await enqueue(ledger, message(1), message(2), message(3), message(4), message(5));
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane, 4), (n, position) => {
      if (n === 2) return { kind: 'dead', position, error: 'no' };
      return n === 3 ? failed(position, future) : undefined;
    });
    const kept: string[] = [];
    const keep = async (messages: readonly OutboxMessage[]): Promise<void> => {
      for (const { id, status } of messages) kept.push(`${ids.indexOf(id)} ${status}`);
    };
    assert.equal(await ledger.archive(past, keep), 0);
    assert.equal(await ledger.archive(future, keep, 1), 1);
    assert.equal(await ledger.archive(future, keep), 1);
    assert.equal(await ledger.archive(future, keep), 0);
    assert.deepEqual(kept, ['0 SENT', '3 SENT']);
    const left = await statuses(ledger, ids);
    assert.deepEqual(left, [undefined, 'DEAD', 'FAILED', undefined, 'PENDING']);
  },

  'lists find messages of lanes by their status': async (_opened, ledger) => {
    await declared(ledger);
    const ids = await enqueue(ledger, message(1), message(2), message(3));
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane, 2), (n, position) =>
      n === 2 ? failed(position, future) : undefined,
    );
    for (const [at, status] of (['SENT', 'FAILED', 'PENDING'] as const).entries()) {
      const found = await ledger.list({ status });
      assert.deepEqual(
        found.map(({ id }) => id),
        [ids[at]],
      );
    }
    await fetchFrom(ledger, [lane]);
    assert.equal((await ledger.list({ status: 'CLAIMED' }))[0]?.id, ids[2]);
  },

  'the mode is not changed while messages wait, and loses none when it is': async (
    _opened,
    ledger,
  ) => {
    const [single = ''] = await enqueue(ledger, message(1));
    await rejectsWith(() => ledger.streams.declare(type), 'OUTBOX_STREAM_BUSY');
    const [claimed] = await claimSingly(ledger);
    await rejectsWith(() => ledger.streams.declare(type), 'OUTBOX_STREAM_BUSY');
    await ledger.deadLetter(claimed as never, 'no');
    await declared(ledger, 2);
    await rejectsWith(() => ledger.streams.declare(type, { lanes: 3 }), 'OUTBOX_STREAM_BUSY');
    // One that died in the other mode comes back in this one.
    assert.equal(await ledger.replay({}), 1);
    assert.deepEqual(await claimSingly(ledger), []);
    const lanes = await acquire(ledger);
    const [batch] = await fetchFrom(ledger, lanes);
    assert.deepEqual(numbers([batch as LaneBatch]), [1]);
    await rejectsWith(() => ledger.streams.retire(type), 'OUTBOX_STREAM_BUSY');
    await settle(ledger, batch as LaneBatch);
    const [second = ''] = await enqueue(ledger, message(2));
    await rejectsWith(() => ledger.streams.retire(type), 'OUTBOX_STREAM_BUSY');
    const [dying] = await fetchFrom(ledger, lanes);
    await settle(ledger, dying as LaneBatch, (_n, position) => ({
      kind: 'dead',
      position,
      error: 'no',
    }));
    assert.equal(await ledger.streams.retire(type), true);
    assert.equal(await ledger.streams.retire(type), false);
    assert.deepEqual(await ledger.streams.declared(), []);
    assert.equal(await ledger.replay({}), 1);
    const [third = ''] = await enqueue(ledger, message(3));
    const again = await claimSingly(ledger);
    assert.deepEqual(new Set(again.map(({ id }) => id)), new Set([second, third]));
    await ledger.settle(again.map((each) => ({ kind: 'sent', claim: each })));
    assert.deepEqual(await statuses(ledger, [single, second, third]), ['SENT', 'SENT', 'SENT']);
    assert.deepEqual(await ledger.counts(), counted({ SENT: 3 }));
  },

  'a batch that was given out over and over without an end comes one by one, and says how often':
    async (_opened, ledger) => {
      await declared(ledger);
      await enqueue(ledger, message(1), message(2));
      const lane = await only(ledger);
      for (let start = 0; start < 3; start += 1) {
        assert.deepEqual(numbers([await theBatch(ledger, lane)]), [1, 2]);
      }
      for (let start = 1; start <= 3; start += 1) {
        const { items } = await theBatch(ledger, lane);
        assert.deepEqual(
          items.map(({ message: { payload, starts } }) => [payload['n'], starts]),
          [[1, start]],
        );
      }
      const again = await theBatch(ledger, lane);
      await settle(ledger, again);
      assert.deepEqual(numbers([await theBatch(ledger, lane)]), [2]);
    },
};

export const heldBackCases: LedgerCases = {
  'what commits late is not skipped: nothing behind it goes out before': async (opened, ledger) => {
    await declared(ledger);
    const lane = await only(ledger);
    const fetch = { lanes: [{ claim: lane, limit: 10 }], bytesMax, leaseMs };
    assert.ok(opened.inTransaction !== undefined);
    await opened.inTransaction(async (transaction) => {
      await ledger.enqueueIn(transaction, [message(1)]);
      await enqueue(ledger, message(2), message(3));
      const held = await ledger.streams.exchange([], fetch);
      assert.deepEqual(held.batches, []);
      assert.equal(held.isHeldBack, true);
    });
    assert.deepEqual(numbers(await fetchFrom(ledger, [lane])), [1, 2, 3]);
  },

  'one that rolls back holds nobody any more': async (opened, ledger) => {
    await declared(ledger);
    const lane = await only(ledger);
    await assert.rejects(
      async () =>
        opened.inTransaction?.(async (transaction) => {
          await ledger.enqueueIn(transaction, [message(1)]);
          await enqueue(ledger, message(2));
          assert.deepEqual(await fetchFrom(ledger, [lane]), []);
          throw new Error('rolled back');
        }),
      /rolled back/,
    );
    assert.deepEqual(numbers(await fetchFrom(ledger, [lane])), [2]);
  },

  'a transaction that enqueues for others holds nobody back': async (opened, ledger) => {
    await declared(ledger);
    const lane = await only(ledger);
    await opened.inTransaction?.(async (transaction) => {
      await ledger.enqueueIn(transaction, [newMessage()]);
      await enqueue(ledger, message(1));
      assert.deepEqual(numbers(await fetchFrom(ledger, [lane])), [1]);
    });
  },
};

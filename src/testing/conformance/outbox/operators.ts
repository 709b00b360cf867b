// Cases of messages that an operator retries now or discards.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually, rejectsWith } from '../../assertions.ts';
import {
  claim,
  claimAndDie,
  claimOne,
  enqueued,
  future,
  past,
  statusOf,
  type LedgerCases,
} from './fixture.ts';

export const operatorCases: LedgerCases = {
  async 'a message that waits for its next attempt is due at once, with its attempts'(
    _opened,
    ledger,
  ) {
    const [id = ''] = await enqueued(ledger, { maxAttempts: 2 });
    await ledger.markFailed(await claimOne(ledger), 'one', future);
    assert.deepEqual(await claim(ledger), []);
    const before = await ledger.find(id);
    assert.deepEqual(await ledger.retryNow([id]), [id]);
    // A second operator changes nothing.
    assert.deepEqual(await ledger.retryNow([id]), []);
    const after = await ledger.find(id);
    assert.equal(after?.status, 'FAILED');
    assert.deepEqual(after?.updatedAt, before?.updatedAt);
    const again = await claimOne(ledger);
    assert.deepEqual([again.id, again.attempts, again.lastError], [id, 1, 'one']);
    assert.deepEqual(await ledger.retryNow([id]), [], 'a claimed message is left alone');
    assert.equal(await ledger.markFailed(again, 'two', future), 'settled');
    assert.equal(await ledger.getAttempts(id), 2);
  },

  async 'retrying now keeps the order of a key'(_opened, ledger) {
    const [first = '', second = ''] = await enqueued(
      ledger,
      { orderingKey: 'k', dueAt: future },
      { orderingKey: 'k', dueAt: future },
    );
    assert.deepEqual(await ledger.retryNow([second]), [second]);
    assert.deepEqual(await claim(ledger), []);
    assert.deepEqual(await ledger.retryNow([first, second]), [first]);
    const claimed = await claimOne(ledger);
    assert.equal(claimed.id, first);
    await ledger.markSent(claimed);
    assert.equal((await claimOne(ledger)).id, second);
  },

  async 'ended and unknown messages are not retried'(_opened, ledger) {
    const ids = await enqueued(ledger, {}, {});
    const [sent, dead] = await claim(ledger);
    await ledger.markSent(sent ?? assert.fail());
    await ledger.deadLetter(dead ?? assert.fail(), 'no');
    assert.deepEqual(await ledger.retryNow([...ids, randomUUID()]), []);
    assert.deepEqual(await ledger.retryNow([]), []);
    await rejectsWith(() => ledger.retryNow(['no id']), 'OUTBOX_INVALID');
  },

  async 'a discarded message is ended, and the next one of its key follows'(_opened, ledger) {
    const [first = '', second = '', third = ''] = await enqueued(
      ledger,
      ...Array.from({ length: 3 }, () => ({ orderingKey: 'k' })),
    );
    await ledger.markFailed(await claimOne(ledger), 'busy', future);
    const discarded = { by: 'ada', reason: 'sent by hand' };
    const changed = await ledger.discard([first, second], discarded);
    assert.deepEqual(changed.toSorted(), [first, second].toSorted());
    assert.deepEqual(await ledger.discard([first], { by: 'bob', reason: 'too late' }), []);
    const found = await ledger.find(first);
    assert.equal(found?.status, 'DISCARDED');
    assert.deepEqual(found?.discarded, discarded);
    assert.deepEqual([found?.attempts, found?.lastError], [1, 'busy']);
    assert.equal((await ledger.find(third))?.discarded, undefined);
    assert.equal((await claimOne(ledger)).id, third);
    assert.deepEqual(await ledger.counts(), {
      PENDING: 0,
      CLAIMED: 1,
      SENT: 0,
      FAILED: 0,
      DEAD: 0,
      DISCARDED: 2,
    });
    const listed = await ledger.list({ status: 'DISCARDED' });
    assert.deepEqual(
      listed.map(({ id }) => id),
      [second, first],
    );
    assert.deepEqual(await ledger.list({ status: 'DEAD' }), []);
  },

  async 'a claimed message is not discarded, one whose lease expired is'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    assert.deepEqual(await ledger.discard([id], { by: 'ada', reason: 'no' }), []);
    assert.equal(await ledger.markFailed(claimed, 'one', past), 'settled');
    const dying = await claimAndDie(ledger);
    await eventually('the lease expires', async () => {
      const changed = await ledger.discard([id], { by: 'ada', reason: 'no' });
      return changed.length === 1;
    });
    assert.equal(await ledger.markSent(dying), 'stale');
    assert.equal(await statusOf(ledger, id), 'DISCARDED');
  },

  async 'a dead message that was discarded is not replayed'(_opened, ledger) {
    const [id = '', other = ''] = await enqueued(ledger, {}, {});
    for (const each of await claim(ledger)) await ledger.deadLetter(each, 'no');
    assert.deepEqual(await ledger.discard([id], { by: 'ada', reason: 'no' }), [id]);
    assert.equal(await ledger.replay({}), 1);
    assert.equal(await ledger.replay({ ids: [id] }), 0);
    assert.equal((await claimOne(ledger)).id, other);
    await rejectsWith(() => ledger.discard([id], { by: 'ada', reason: '' }), 'OUTBOX_INVALID');
  },
};

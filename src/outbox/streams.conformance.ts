// Stream mode: lanes with one owner, cursors that are fenced by an epoch, and messages put aside without
// holding up other keys.

import assert from 'node:assert/strict';
import {
  claim as claimSingly,
  eventually,
  future,
  leaseMs,
  past,
  statusOf,
  type LedgerCases,
} from './ledger-fixture.conformance.ts';
import type { LaneBatch, LaneChange, LaneClaim, LaneOutcome } from './outbox-streams.ts';
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

export const streamCases: LedgerCases = {
  'messages of a declared destination go in its lanes, in order, and are claimed by nobody': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    assert.equal(await ledger.streams.declare(type, { lanes: 1 }), false);
    assert.deepEqual(await ledger.streams.declared(), [{ integrationType: type, lanes: 1 }]);
    const ids = await enqueue(ledger, message(1), message(2), message(3));
    assert.deepEqual(await claimSingly(ledger), []);
    const lane = await only(ledger);
    const first = await theBatch(ledger, lane, 2);
    assert.deepEqual(numbers([first]), [1, 2]);
    assert.deepEqual(await statuses(ledger, ids), ['CLAIMED', 'CLAIMED', 'PENDING']);
    assert.deepEqual(await ledger.counts(), counted({ CLAIMED: 2, PENDING: 1 }));
    assert.equal(await settle(ledger, first), 'settled');
    assert.deepEqual(await statuses(ledger, ids), ['SENT', 'SENT', 'PENDING']);
    assert.deepEqual(numbers(await fetchFrom(ledger, [lane])), [3]);
    assert.deepEqual(await ledger.counts(), counted({ SENT: 2, CLAIMED: 1 }));
  },

  'one round trip settles a batch and brings the next': async (_opened, ledger) => {
    await declared(ledger);
    await enqueue(ledger, message(1), message(2));
    const claim = await only(ledger);
    const batch = await theBatch(ledger, claim, 1);
    const outcome = { claim, number: batch.number, upTo: batch.items[0]?.position, changes: [] };
    const answer = await ledger.streams.exchange([outcome], {
      lanes: [{ claim, limit: 10 }],
      bytesMax,
      leaseMs,
    });
    assert.deepEqual(answer.settled, ['settled']);
    assert.deepEqual(numbers(answer.batches), [2]);
    assert.equal(answer.isHeldBack, false);
  },

  'what is told again, because the answer was lost, counts once': async (_opened, ledger) => {
    await declared(ledger);
    const key = { orderingKey: 'a' };
    const ids = await enqueue(ledger, message(1), message(2, key), message(3), message(4, key));
    const claim = await only(ledger);
    const batch = await theBatch(ledger, claim, 3);
    const tell = (n: unknown, position: number): LaneChange | undefined => {
      if (n === 1) return { kind: 'dead', position, error: 'no' };
      return n === 2 ? failed(position, future) : undefined;
    };
    assert.equal(await settle(ledger, batch, tell), 'settled');
    assert.equal(await settle(ledger, batch, tell), 'settled');
    // Also when the next one went out with the answer.
    await theBatch(ledger, claim);
    assert.equal(await settle(ledger, batch, tell), 'settled');
    assert.deepEqual(await statuses(ledger, ids), ['DEAD', 'FAILED', 'SENT', 'CLAIMED']);
    assert.equal((await ledger.find(ids[1] ?? ''))?.attempts, 1);
  },

  'a message that was sent tells when, who held it, and what it is': async (_opened, ledger) => {
    await declared(ledger);
    const item = message(1, { tenantId: 't', orderingKey: 'k', headers: { h: 1 } });
    const [id = ''] = await enqueue(ledger, item);
    const batch = await theBatch(ledger, await only(ledger));
    const out = await ledger.find(id);
    assert.equal(out?.lockedBy, 'relay');
    assert.equal(out.sentAt, undefined);
    const [handed] = batch.items;
    assert.equal(handed?.message.id, id);
    assert.deepEqual(handed.message.headers, { h: 1 });
    assert.equal(handed.message.orderingKey, 'k');
    await settle(ledger, batch);
    const sent = await ledger.find(id);
    assert.equal(sent?.status, 'SENT');
    assert.ok(sent.sentAt !== undefined && sent.sentAt >= sent.createdAt);
    assert.equal(sent.lockedBy, undefined);
    assert.equal(sent.attempts, 0);
  },

  'an event is enqueued once, also in stream mode': async (_opened, ledger) => {
    await declared(ledger);
    const item = message(1);
    const [first, again] = await ledger.enqueueMany([item, item]);
    assert.equal(first?.isNew, true);
    assert.deepEqual(again, { id: first.id, isNew: false });
    await settle(ledger, await theBatch(ledger, await only(ledger)));
    assert.deepEqual(await ledger.enqueue(item), { id: first.id, isNew: false });
  },

  'one key is one lane': async (_opened, ledger) => {
    await declared(ledger, 8);
    const items = Array.from({ length: 60 }, (_, n) => message(n, { orderingKey: `k${n % 12}` }));
    await enqueue(ledger, ...items);
    const batches = await fetchFrom(ledger, await acquire(ledger));
    assert.equal(numbers(batches).length, 60);
    const laneOf = new Map<unknown, number>();
    for (const { claim, items: all } of batches) {
      const seen = all.map(({ message: { payload } }) => Number(payload['n']));
      assert.deepEqual(
        seen,
        seen.toSorted((a, b) => a - b),
      );
      for (const n of seen) {
        assert.equal(laneOf.get(n % 12) ?? claim.lane, claim.lane);
        laneOf.set(n % 12, claim.lane);
      }
    }
    assert.ok(batches.length > 1);
  },

  'a batch is bounded by bytes, and one that is too large goes alone': async (_opened, ledger) => {
    await declared(ledger);
    const big = { payload: { n: 1, text: 'x'.repeat(2_000) } };
    await enqueue(ledger, message(1, big), message(2), message(3), message(4));
    const lane = await only(ledger);
    const [first] = await fetchFrom(ledger, [lane], 100, 20);
    assert.deepEqual(numbers(first === undefined ? [] : [first]), [1]);
    await settle(ledger, first as LaneBatch);
    // Seven bytes each.
    assert.deepEqual(numbers(await fetchFrom(ledger, [lane], 100, 20)), [2, 3]);
  },

  'a failed message lets other keys go, and those of its key wait behind it, also new ones': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    const [a1 = '', b1 = '', a2 = ''] = await enqueue(
      ledger,
      message(1, { orderingKey: 'a' }),
      message(2, { orderingKey: 'b' }),
      message(3, { orderingKey: 'a' }),
    );
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane), (n, position) => {
      if (n === 1) return failed(position, future);
      return n === 3 ? { kind: 'waits', position } : undefined;
    });
    assert.deepEqual(await statuses(ledger, [a1, b1, a2]), ['FAILED', 'SENT', 'PENDING']);
    assert.equal((await ledger.find(a1))?.lastError, 'no');
    assert.equal((await ledger.find(a1))?.attempts, 1);
    await enqueue(
      ledger,
      message(4, { orderingKey: 'a' }),
      message(5, { orderingKey: 'b' }),
      message(6),
    );
    const next = await theBatch(ledger, lane);
    const waits = next.items.map(({ message: { payload }, mustWait }) => [payload['n'], mustWait]);
    assert.deepEqual(waits, [
      [4, true],
      [5, false],
      [6, false],
    ]);
    await settle(ledger, next, (n, position) =>
      n === 4 ? { kind: 'waits', position } : undefined,
    );
    assert.deepEqual(await ledger.counts(), counted({ FAILED: 1, PENDING: 2, SENT: 3 }));
    assert.deepEqual(await fetchFrom(ledger, [lane]), []);
  },

  'what was put aside comes back in order once it is due, before what follows': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    const key = { orderingKey: 'a' };
    const ids = await enqueue(ledger, message(1, key), message(2, key), message(3, key));
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane), (n, position) =>
      n === 1 ? failed(position, past) : { kind: 'waits', position },
    );
    await enqueue(ledger, message(4, key));
    const back = await theBatch(ledger, lane);
    assert.deepEqual(numbers([back]), [1, 2, 3, 4]);
    assert.deepEqual(
      back.items.map(({ isParked, mustWait }) => [isParked, mustWait]),
      [
        [true, false],
        [true, false],
        [true, false],
        [false, false],
      ],
    );
    assert.equal(back.items[0]?.message.attempts, 1);
    await settle(ledger, back);
    assert.deepEqual(await statuses(ledger, ids), ['SENT', 'SENT', 'SENT']);
    const sent = await ledger.find(ids[0] ?? '');
    assert.equal(sent?.attempts, 1);
    assert.equal(sent.lastError, 'no');
    assert.ok(sent.sentAt !== undefined);
  },

  'one that is due later waits aside, and those of its key behind it': async (_opened, ledger) => {
    await declared(ledger);
    const [later = ''] = await enqueue(
      ledger,
      message(1, { orderingKey: 'a', dueAt: future }),
      message(2, { orderingKey: 'b' }),
    );
    const lane = await only(ledger);
    const batch = await theBatch(ledger, lane);
    assert.deepEqual(
      batch.items.map(({ mustWait }) => mustWait),
      [true, false],
    );
    await settle(ledger, batch, (n, position) =>
      n === 1 ? { kind: 'waits', position } : undefined,
    );
    assert.deepEqual((await ledger.find(later))?.dueAt, future);
    await enqueue(ledger, message(3, { orderingKey: 'a' }));
    const next = await theBatch(ledger, lane);
    assert.equal(next.items[0]?.mustWait, true);
    const asked = { lanes: [{ claim: lane, limit: 1 }], bytesMax, leaseMs };
    assert.deepEqual((await ledger.streams.exchange([], asked)).nextDueAt, future);
  },

  'a dead letter of a lane is visible, lets those behind it go, and is replayed': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    const key = { orderingKey: 'a' };
    const [first = ''] = await enqueue(ledger, message(1, key), message(2, key));
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane), (n, position) =>
      n === 1 ? { kind: 'dead', position, error: 'refused' } : undefined,
    );
    const [dead] = await ledger.list({ status: 'DEAD' });
    assert.equal(dead?.id, first);
    assert.equal(dead.lastError, 'refused');
    assert.equal(dead.attempts, 1);
    assert.deepEqual(await ledger.counts(), counted({ SENT: 1, DEAD: 1 }));
    assert.deepEqual(await fetchFrom(ledger, [lane]), []);
    assert.equal(await ledger.replay({ integrationType: type }), 1);
    assert.equal(await statusOf(ledger, first), 'PENDING');
    const back = await theBatch(ledger, lane);
    assert.deepEqual(numbers([back]), [1]);
    assert.equal(back.items[0]?.message.attempts, 0);
    await settle(ledger, back);
    assert.deepEqual(await ledger.counts(), counted({ SENT: 2 }));
  },

  'one that is replayed does not take those of its key that failed along before their time': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger);
    const key = { orderingKey: 'a' };
    await enqueue(ledger, message(1, key), message(2, key));
    const lane = await only(ledger);
    await settle(ledger, await theBatch(ledger, lane), (n, position) =>
      n === 1 ? { kind: 'dead', position, error: 'no' } : failed(position, future),
    );
    assert.deepEqual(await fetchFrom(ledger, [lane]), []);
    await ledger.replay({});
    assert.deepEqual(numbers([await theBatch(ledger, lane)]), [1]);
  },

  'an owner whose epoch is over changes nothing and gets nothing': async (_opened, ledger) => {
    await declared(ledger);
    const [id = ''] = await enqueue(ledger, message(1));
    const [old] = await acquire(ledger, 'dying', { leaseMs: 1 });
    assert.ok(old !== undefined);
    // Its batch renews the lease: what it holds is only over in a millisecond if nothing was fetched.
    let taken: readonly LaneClaim[] = [];
    await eventually('somebody else has the lane', async () => {
      taken = await acquire(ledger, 'next');
      return taken.length === 1;
    });
    assert.ok(Number(taken[0]?.epoch) > old.epoch);
    assert.deepEqual(await fetchFrom(ledger, [old]), []);
    const batch = await theBatch(ledger, taken[0] as LaneClaim);
    const position = batch.items[0]?.position ?? 0;
    for (const changes of [[], [{ kind: 'dead' as const, position, error: 'late' }]]) {
      const late: LaneOutcome = { claim: old, number: batch.number, upTo: position, changes };
      assert.deepEqual((await ledger.streams.exchange([late])).settled, ['stale']);
    }
    assert.equal(await statusOf(ledger, id), 'CLAIMED');
    assert.equal(await settle(ledger, batch), 'settled');
    assert.equal(await statusOf(ledger, id), 'SENT');
  },

  'two relays share the lanes, and one that leaves gives them up at once': async (
    _opened,
    ledger,
  ) => {
    await declared(ledger, 6);
    const alone = await acquire(ledger, 'one');
    assert.equal(alone.length, 6);
    assert.equal((await acquire(ledger, 'two')).length, 0);
    const [kept] = (await ledger.streams.acquire({
      workerId: 'one',
      integrationTypes: [type],
      leaseMs,
      giveBack: alone.slice(0, 3),
    })) as readonly { readonly share: number }[];
    assert.equal(kept?.share, 3);
    const second = await acquire(ledger, 'two');
    assert.deepEqual(
      second.map(({ lane }) => lane),
      alone.slice(0, 3).map(({ lane }) => lane),
    );
    await ledger.streams.acquire({
      workerId: 'one',
      integrationTypes: [],
      leaseMs,
      giveBack: alone.slice(3),
    });
    assert.equal((await acquire(ledger, 'two')).length, 6);
  },
};

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import { systemClock } from '../../../foundation/clock.ts';
import {
  claim,
  claimAgain,
  claimAndDie,
  claimOne,
  enqueued,
  future,
  leaseMs,
  newMessage,
  past,
  statusOf,
  type LedgerCases,
} from './fixture.ts';

export const claimCases: LedgerCases = {
  async 'a claim takes due messages, and stores its owner and time'(_opened, ledger) {
    const [id] = await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    assert.equal(claimed.id, id);
    assert.equal(claimed.status, 'CLAIMED');
    assert.equal(claimed.lockedBy, 'worker');
    assert.ok(claimed.lockedAt !== undefined);
    assert.equal(claimed.starts, 1);
    const found = await ledger.find(claimed.id);
    assert.equal(found?.status, 'CLAIMED');
    assert.equal(found.lockedBy, 'worker');
    assert.equal(found.lockedAt?.getTime(), claimed.lockedAt.getTime());
  },

  async 'a claim without due messages is empty'(_opened, ledger) {
    assert.deepEqual(await claim(ledger), []);
  },

  async 'claims no more messages than the limit'(_opened, ledger) {
    await enqueued(ledger, {}, {}, {}, {}, {});
    assert.equal((await claim(ledger, 2)).length, 2);
    assert.equal((await claim(ledger, 2)).length, 2);
    assert.equal((await claim(ledger, 2)).length, 1);
    assert.deepEqual(await claim(ledger, 2), []);
  },

  async 'a claimed message is not claimed again during its lease'(_opened, ledger) {
    await enqueued(ledger, {});
    await claimOne(ledger);
    assert.deepEqual(await claim(ledger), []);
  },

  async 'within a lane the oldest messages are claimed first'(_opened, ledger) {
    const ids = await enqueued(ledger, ...Array.from({ length: 10 }, () => ({})));
    const claimed = [...(await claim(ledger, 5)), ...(await claim(ledger, 5))];
    assert.deepEqual(new Set(claimed.slice(0, 5).map(({ id }) => id)), new Set(ids.slice(0, 5)));
    assert.deepEqual(new Set(claimed.map(({ id }) => id)), new Set(ids));
  },

  async 'claims a failed message again when it is due, not before'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    await ledger.markFailed(await claimOne(ledger), 'HTTP 503', future);
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await statusOf(ledger, id), 'FAILED');
  },

  async 'a claimed retry contains its attempts and its error'(_opened, ledger) {
    await enqueued(ledger, {});
    await ledger.markFailed(await claimOne(ledger), 'HTTP 503', past);
    const again = await claimOne(ledger);
    assert.equal(again.attempts, 1);
    assert.equal(again.starts, 2);
    assert.equal(again.lastError, 'HTTP 503');
    assert.equal(again.dueAt.getTime(), past.getTime());
  },

  async 'claims messages that become due together with waiting ones'(_opened, ledger) {
    await enqueued(ledger, { dueAt: new Date(Date.now() + 300) });
    // On a slow machine the message is due by then.
    const [early] = await claim(ledger);
    const { attempts, dueAt, lockedAt } = early ?? (await claimAgain(ledger));
    assert.equal(attempts, 0);
    assert.ok(Number(lockedAt) >= dueAt.getTime());
  },

  async 'an expired lease is claimable again, and counts no attempt'(_opened, ledger) {
    const [id] = await enqueued(ledger, {});
    const first = await claimAndDie(ledger);
    const second = await claimAgain(ledger);
    assert.equal(second.id, id);
    assert.notEqual(second.token, first.token);
    assert.equal(second.attempts, 0);
    assert.equal(second.starts, 2);
  },

  async 'a message whose owner died is no longer CLAIMED'(_opened, ledger) {
    await enqueued(ledger, {});
    const { id } = await claimAndDie(ledger);
    await eventually('it is PENDING', async () => (await statusOf(ledger, id)) === 'PENDING');
  },

  async 'every claim has a unique token'(_opened, ledger) {
    await enqueued(ledger, {}, {});
    const [a] = await claim(ledger, 1);
    const [b] = await claim(ledger, 1);
    assert.ok(a !== undefined && b !== undefined);
    assert.notEqual(a.token, b.token);
    await ledger.release(a);
    const [again] = await claim(ledger, 1);
    assert.equal(again?.id, a.id);
    assert.notEqual(again.token, a.token);
  },

  async 'rejects invalid claims'(_opened, ledger) {
    for (const limit of [0, -1, 1.5, 1_000_000]) {
      await rejectsWith(() => ledger.claimDueBatch('w', limit), 'OUTBOX_INVALID');
    }
    await rejectsWith(() => ledger.claimDueBatch('', 1), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.claimDueBatch('w'.repeat(121), 1), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.claimDueBatch('w', 1, { leaseMs: 0 }), 'OUTBOX_INVALID');
  },

  async 'concurrent claims never get the same message'(_opened, ledger) {
    await enqueued(ledger, ...Array.from({ length: 200 }, (_, at) => ({ tenantId: `t${at % 7}` })));
    const batches = await Promise.all(
      Array.from({ length: 12 }, (_, at) => ledger.claimDueBatch(`w${at}`, 30, { leaseMs })),
    );
    const ids = batches.flat().map(({ id }) => id);
    // Messages locked by a concurrent claim are left for the next claim.
    for (;;) {
      const more = await claim(ledger);
      if (more.length === 0) break;
      ids.push(...more.map(({ id }) => id));
    }
    assert.equal(ids.length, 200);
    assert.equal(new Set(ids).size, 200);
  },

  async 'a tenant with a backlog leaves room for another one in the next batch'(_opened, ledger) {
    const noisy = Array.from({ length: 500 }, () => newMessage({ tenantId: 'noisy' }));
    await ledger.enqueueMany(noisy);
    // Some tenants may share the lane of the noisy one.
    await enqueued(ledger, ...['a', 'b', 'c', 'd'].map((tenantId) => ({ tenantId })));
    const tenants = (await claim(ledger, 100)).map(({ tenantId }) => tenantId);
    assert.equal(tenants.length, 100);
    assert.ok(tenants.filter((tenant) => tenant !== 'noisy').length >= 3);
  },

  async 'batches smaller than the number of lanes reach every tenant in turn'(_opened, ledger) {
    await ledger.enqueueMany(
      Array.from({ length: 300 }, (_, at) => newMessage({ tenantId: `t${at % 30}` })),
    );
    const seen = new Set<string | undefined>();
    for (let round = 0; round < 20; round += 1) {
      for (const { tenantId } of await claim(ledger, 5)) seen.add(tenantId);
    }
    assert.ok(seen.size >= 15, `only ${seen.size} tenants had their turn`);
  },

  async 'claims a backlog of many batches completely'(_opened, ledger) {
    const all = Array.from({ length: 1_000 }, (_, at) => newMessage({ tenantId: `t${at % 3}` }));
    const ids = new Set((await ledger.enqueueMany(all)).map(({ id }) => id));
    for (;;) {
      const claimed = await claim(ledger, 64);
      if (claimed.length === 0) break;
      for (const { id } of claimed) assert.ok(ids.delete(id));
      await ledger.settle(claimed.map((each) => ({ kind: 'sent' as const, claim: each })));
    }
    assert.equal(ids.size, 0);
    assert.equal((await ledger.counts()).SENT, 1_000);
  },

  async 'an enqueue wakes a waiting dispatcher'(_opened, ledger) {
    const stopping = new AbortController();
    let woken = false;
    // With a poll interval of an hour, only the enqueue ends the wait. The first wait may return at once.
    const waiting = (async () => {
      while ((await claim(ledger)).length === 0) await ledger.whenDue(3_600_000, stopping.signal);
      woken = true;
    })();
    await eventually('it is woken', async () => {
      await ledger.enqueue(newMessage());
      return woken;
    });
    await waiting;
  },

  async 'a wait resolves after the poll interval, or at once when it is aborted'(_opened, ledger) {
    await ledger.whenDue(5, new AbortController().signal);
    await ledger.whenDue(5, new AbortController().signal);
    const stopping = new AbortController();
    const waiting = (async () => {
      for (;;) await ledger.whenDue(3_600_000, stopping.signal);
    })();
    stopping.abort();
    await rejectsWith(() => waiting, 'ABORTED');
  },
};

export const orderCases: LedgerCases = {
  async 'claims messages with one ordering key one at a time, in order'(_opened, ledger) {
    const ids = await enqueued(ledger, ...Array.from({ length: 5 }, () => ({ orderingKey: 'k' })));
    for (const id of ids) {
      const claimed = await claimOne(ledger);
      assert.equal(claimed.id, id);
      assert.deepEqual(await claim(ledger), []);
      await ledger.markSent(claimed);
    }
  },

  async 'a waiting ordering key does not block other keys'(_opened, ledger) {
    const [first] = await enqueued(ledger, { orderingKey: 'a' }, { orderingKey: 'a' });
    const blocked = await claimOne(ledger);
    assert.equal(blocked.id, first);
    const [other] = await enqueued(ledger, { orderingKey: 'b' });
    assert.equal((await claimOne(ledger)).id, other);
  },

  async 'a failed message holds back later ones of its key'(_opened, ledger) {
    const [first, second] = await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    await ledger.markFailed(await claimOne(ledger), 'no', new Date(Date.now() + 100));
    const again = await claimAgain(ledger);
    assert.equal(again.id, first);
    await ledger.markSent(again);
    assert.equal((await claimOne(ledger)).id, second);
  },

  async 'a dead message releases later ones of its key'(_opened, ledger) {
    const [, second] = await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    await ledger.deadLetter(await claimOne(ledger), 'no');
    assert.equal((await claimOne(ledger)).id, second);
  },

  async 'a message whose owner died stays before later ones of its key'(_opened, ledger) {
    const [first, second] = await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    assert.equal((await claimAndDie(ledger)).id, first);
    const again = await claimAgain(ledger);
    assert.equal(again.id, first);
    await ledger.markSent(again);
    assert.equal((await claimOne(ledger)).id, second);
  },

  async 'a released message stays before later ones of its key'(_opened, ledger) {
    const [first] = await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    await ledger.release(await claimOne(ledger));
    assert.equal((await claimOne(ledger)).id, first);
  },

  async 'one ordering key of two destinations has two independent orders'(_opened, ledger) {
    const item = newMessage({ orderingKey: 'k' });
    await ledger.enqueueMany([item, { ...item, integrationType: 'kafka:payments' }]);
    assert.equal((await claim(ledger)).length, 2);
  },

  async 'a new message waits while the first of its key is being sent'(_opened, ledger) {
    await enqueued(ledger, { orderingKey: 'k' });
    const first = await claimOne(ledger);
    const [second] = await enqueued(ledger, { orderingKey: 'k' });
    const [third] = await enqueued(ledger, { orderingKey: 'k' });
    assert.deepEqual(await claim(ledger), []);
    await ledger.markSent(first);
    const next = await claimOne(ledger);
    assert.equal(next.id, second);
    await ledger.markSent(next);
    assert.equal((await claimOne(ledger)).id, third);
  },

  async 'a replayed message does not let later ones overtake a claimed one'(_opened, ledger) {
    const ids = await enqueued(ledger, ...Array.from({ length: 3 }, () => ({ orderingKey: 'k' })));
    await ledger.deadLetter(await claimOne(ledger), 'no');
    const second = await claimOne(ledger);
    await ledger.replay({ ids: [ids[0] ?? ''] });
    const out = [second, ...(await claim(ledger))];
    assert.ok(out.every(({ id }) => id !== ids[2]));
    for (const each of out) await ledger.markSent(each);
    for (const left of await claim(ledger)) {
      if (left.id !== ids[2]) await ledger.markSent(left);
    }
    await eventually('the last one goes', async () => {
      await claim(ledger);
      return (await statusOf(ledger, ids[2] ?? '')) === 'CLAIMED';
    });
  },

  async 'sending a replayed message does not release others while one of its key fails'(
    _opened,
    ledger,
  ) {
    const ids = await enqueued(ledger, ...Array.from({ length: 3 }, () => ({ orderingKey: 'k' })));
    await ledger.deadLetter(await claimOne(ledger), 'no');
    const second = await claimOne(ledger);
    await ledger.replay({ ids: [ids[0] ?? ''] });
    const [replayed] = await claim(ledger);
    await ledger.settle([
      ...(replayed === undefined ? [] : [{ kind: 'sent' as const, claim: replayed }]),
      { kind: 'failed', claim: second, error: 'no', nextDueAt: future },
    ]);
    for (const { id } of [...(await claim(ledger)), ...(await claim(ledger))]) {
      assert.equal(id, ids[0], 'the last message overtook the failed one');
    }
  },

  async 'many keys are sent in order, with any number of owners'(_opened, ledger) {
    const count = 120;
    await ledger.enqueueMany(
      Array.from({ length: count }, (_, at) =>
        newMessage({ orderingKey: `k${at % 7}`, payload: { at } }),
      ),
    );
    const last = new Map<string, number>();
    let sent = 0;
    await Promise.all(
      Array.from({ length: 4 }, async (_, worker) => {
        const deadlineMs = systemClock.now() + 60_000;
        while (sent < count) {
          assert.ok(systemClock.now() < deadlineMs, `only ${sent} of ${count} were sent`);
          const batch = await ledger.claimDueBatch(`w${worker}`, 5, { leaseMs });
          for (const { orderingKey = '', payload } of batch) {
            const at = Number(payload['at']);
            assert.ok((last.get(orderingKey) ?? -1) < at, `${orderingKey}: ${at} came late`);
            last.set(orderingKey, at);
          }
          const results = await ledger.settle(batch.map((each) => ({ kind: 'sent', claim: each })));
          sent += results.filter((result) => result === 'settled').length;
        }
      }),
    );
    assert.equal((await ledger.counts()).SENT, count);
  },
};

export const sharedCases: LedgerCases = {
  async 'two connections to one ledger never claim the same message'(opened, ledger) {
    const second = await opened.second?.();
    assert.ok(second !== undefined);
    await enqueued(ledger, ...Array.from({ length: 100 }, () => ({})));
    const ids: string[] = [];
    await Promise.all(
      [ledger, second].map(async (each) => {
        while (ids.length < 100) ids.push(...(await claim(each, 7)).map(({ id }) => id));
      }),
    );
    assert.equal(new Set(ids).size, 100);
    await second[Symbol.asyncDispose]();
  },

  async 'an enqueue of another connection wakes a waiting dispatcher'(opened, ledger) {
    const second = await opened.second?.();
    assert.ok(second !== undefined);
    const stopping = new AbortController();
    let woken = false;
    const waiting = (async () => {
      while ((await claim(second)).length === 0) await second.whenDue(3_600_000, stopping.signal);
      woken = true;
    })();
    await eventually('it is woken', async () => {
      await ledger.enqueue(newMessage());
      return woken;
    });
    await waiting;
    await second[Symbol.asyncDispose]();
  },

  async 'another connection can settle a claim by its token'(opened, ledger) {
    const second = await opened.second?.();
    assert.ok(second !== undefined);
    await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    assert.equal(await second.markSent(claimed), 'settled');
    assert.equal(await ledger.markSent(claimed), 'stale');
    await second[Symbol.asyncDispose]();
  },
};

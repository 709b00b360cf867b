import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import {
  claim,
  claimAgain,
  claimAndDie,
  claimOne,
  enqueued,
  future,
  leaseMs,
  past,
  statusOf,
  type LedgerCases,
} from './fixture.ts';
import { deliveryJobId } from '../../../outbox/delivery-job.ts';
import { jobsKept } from '../../../outbox/outbox-job.ts';
import type { OutboxLedger, Renewed } from '../../../outbox/outbox-ledger.ts';
import type { ClaimedMessage, OutboxClaim } from '../../../outbox/outbox-message.ts';

const request = { workerId: 'sender', leaseMs };
const claimOf = ({ id, token }: OutboxClaim): OutboxClaim => ({ id, token });

async function renewOne(ledger: OutboxLedger, claimed: OutboxClaim): Promise<Renewed> {
  const [renewed = 'stale'] = await ledger.renew([claimOf(claimed)], request);
  return renewed;
}

async function renewedOf(ledger: OutboxLedger, claimed: OutboxClaim): Promise<ClaimedMessage> {
  const renewed = await renewOne(ledger, claimed);
  return typeof renewed === 'string' ? assert.fail(renewed) : renewed;
}

export const renewCases: LedgerCases = {
  async 'a renewal returns the whole message and a new token, without another start'(
    _opened,
    ledger,
  ) {
    await enqueued(ledger, { payload: { n: 1 }, headers: { h: 'x' }, tenantId: 't', userId: 'u' });
    await ledger.markFailed(await claimOne(ledger), 'HTTP 503', past);
    const claimed = await claimOne(ledger);
    const renewed = await renewedOf(ledger, claimed);
    assert.notEqual(renewed.token, claimed.token);
    assert.ok(renewed.lockedAt !== undefined && claimed.lockedAt !== undefined);
    assert.ok(renewed.lockedAt >= claimed.lockedAt);
    const { token, lockedAt, updatedAt } = renewed;
    const changed = { token, lockedAt, updatedAt, lockedBy: 'sender' };
    assert.deepEqual(renewed, { ...claimed, ...changed });
    assert.equal((await ledger.find(claimed.id))?.lockedBy, 'sender');
  },

  async 'the token before the renewal is stale'(_opened, ledger) {
    await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    const renewed = await renewedOf(ledger, claimed);
    assert.equal(await renewOne(ledger, claimed), 'stale');
    assert.equal(await ledger.markSent(claimed), 'stale');
    assert.deepEqual(await ledger.extend([claimed]), [false]);
    assert.equal(await ledger.markSent(renewed), 'settled');
  },

  async 'exactly one of several concurrent renewals of one claim succeeds'(_opened, ledger) {
    await enqueued(ledger, {});
    const claimed = claimOf(await claimOne(ledger));
    const results = await Promise.all(
      Array.from({ length: 5 }, () => ledger.renew([claimed, claimed, { ...claimed }], request)),
    );
    const won = results.flat().filter((each) => typeof each !== 'string');
    assert.equal(won.length, 1);
    assert.equal(await ledger.markSent(won[0] ?? claimed), 'settled');
  },

  async 'renews many claims at once, each decided separately'(_opened, ledger) {
    await enqueued(ledger, ...Array.from({ length: 30 }, (_, n) => ({ payload: { n } })));
    const claimed = await claim(ledger);
    await ledger.settle(
      claimed.slice(0, 10).map((each) => ({ kind: 'sent' as const, claim: each })),
    );
    const results = await ledger.renew(claimed.map(claimOf), request);
    for (const [at, result] of results.entries()) {
      if (at < 10) assert.equal(result, 'stale');
      else assert.equal(typeof result === 'string' ? result : result.id, claimed[at]?.id);
    }
    const tokens = results.flatMap((each) => (typeof each === 'string' ? [] : [each]));
    assert.deepEqual(
      await ledger.settle(tokens.map((each) => ({ kind: 'sent' as const, claim: each }))),
      tokens.map(() => 'settled'),
    );
    assert.equal((await ledger.counts()).SENT, 30);
  },

  async 'an expired lease can be renewed until another process claims the message'(
    _opened,
    ledger,
  ) {
    await enqueued(ledger, {});
    const late = await claimAndDie(ledger);
    await eventually('it ran out', async () => (await statusOf(ledger, late.id)) === 'PENDING');
    const renewed = await renewedOf(ledger, late);
    assert.equal(await statusOf(ledger, late.id), 'CLAIMED');
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await ledger.markSent(renewed), 'settled');
  },

  async 'a claim that passed to another owner is neither renewed nor extended'(_opened, ledger) {
    await enqueued(ledger, {});
    const late = await claimAndDie(ledger);
    const owner = await claimAgain(ledger);
    assert.equal(await renewOne(ledger, late), 'stale');
    assert.deepEqual(await ledger.extend([late]), [false]);
    assert.equal(await ledger.markSent(owner), 'settled');
  },

  async 'a settled, released or unclaimed message is not renewed'(_opened, ledger) {
    const [first = ''] = await enqueued(ledger, {}, {}, {}, {});
    const [sent, failed, dead, released] = await claim(ledger);
    assert.ok(sent && failed && dead && released);
    await ledger.settle([
      { kind: 'sent', claim: sent },
      { kind: 'failed', claim: failed, error: 'no', nextDueAt: future },
      { kind: 'dead', claim: dead, error: 'no' },
      { kind: 'released', claim: released },
    ]);
    for (const each of [sent, failed, dead, released]) {
      assert.equal(await renewOne(ledger, each), 'stale');
      assert.deepEqual(await ledger.extend([each]), [false]);
    }
    for (const token of ['', '0', '1.0', 'x', '999999.999999']) {
      assert.equal(await renewOne(ledger, { id: first, token }), 'stale');
    }
  },

  async 'renewing a claim of a paused destination releases it until the destination resumes'(
    _opened,
    ledger,
  ) {
    const type = 'webhook:partner-x';
    await enqueued(ledger, {}, { integrationType: 'kafka:payments' });
    const claimed = await claim(ledger);
    await ledger.pause(type, 'ada');
    const results = await ledger.renew(claimed.map(claimOf), request);
    for (const [at, result] of results.entries()) {
      if (claimed[at]?.integrationType === type) assert.equal(result, 'paused');
      else assert.equal(typeof result, 'object');
    }
    const { PENDING, CLAIMED } = await ledger.counts();
    assert.deepEqual([PENDING, CLAIMED], [1, 1]);
    assert.deepEqual(await claim(ledger), []);
    await ledger.resume(type);
    const again = await claimOne(ledger);
    assert.equal(again.starts, 1);
    assert.equal(again.attempts, 0);
  },

  async 'later messages of an ordering key wait for a renewed claim'(_opened, ledger) {
    await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    const renewed = await renewedOf(ledger, await claimOne(ledger));
    assert.deepEqual(await claim(ledger), []);
    await ledger.markSent(renewed);
    assert.equal((await claim(ledger)).length, 1);
  },

  async 'extending leases keeps their tokens, and says which claims are still valid'(
    _opened,
    ledger,
  ) {
    const [id = ''] = await enqueued(ledger, {});
    const claimed = await claimAndDie(ledger);
    const claims = [{ id, token: '7.7' }, claimed, { id, token: 'x' }];
    assert.deepEqual(await ledger.extend(claims, { leaseMs }), [false, true, false]);
    assert.equal(await statusOf(ledger, id), 'CLAIMED');
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await ledger.markSent(claimed), 'settled');
  },

  async 'every renewal is stored as a job with its outcome'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, { tenantId: 'core' });
    const jobs = async () => (await ledger.find(id))?.jobs;
    assert.equal(await jobs(), undefined);
    const first = await claimOne(ledger);
    assert.equal(await jobs(), undefined, 'a claim alone starts no job');
    await ledger.release(await renewedOf(ledger, first), past);
    assert.equal(await jobs(), undefined, 'a released job leaves no entry');

    const second = await claimOne(ledger);
    const failing = await renewedOf(ledger, second);
    const [running] = (await jobs()) ?? [];
    const attempt = { outboxId: id, attempt: 1, token: second.token };
    assert.deepEqual(running, {
      id: deliveryJobId(attempt),
      queue: 'outbox-webhook~partner-x',
      attempt: 1,
      enqueuedAt: second.lockedAt,
      startedAt: failing.lockedAt,
      finishedAt: undefined,
      outcome: 'running',
    });
    await ledger.markFailed(failing, 'HTTP 503', past);
    const again = await claimOne(ledger);
    await ledger.renew([claimOf(again)], { workerId: 'dying', leaseMs: 1, perTenant: true });
    const dying = await renewedOf(ledger, await claimAgain(ledger));
    await ledger.deadLetter(dying, 'HTTP 400');
    assert.equal(await ledger.replay({ ids: [id] }), 1);
    await ledger.markSent(await renewedOf(ledger, await claimOne(ledger)));

    const message = await ledger.find(id);
    const stored = message?.jobs ?? assert.fail('no jobs');
    assert.deepEqual(
      stored.map(({ attempt: nth, outcome }) => `${nth} ${outcome}`),
      ['1 failed', '2 lost', '2 dead', '1 sent'],
    );
    assert.equal(stored[1]?.queue, 'outbox-webhook~partner-x@core');
    assert.equal(stored[1]?.id, deliveryJobId({ outboxId: id, attempt: 2, token: again.token }));
    assert.equal(stored[1]?.finishedAt, undefined);
    for (const { enqueuedAt, startedAt, finishedAt, outcome } of stored) {
      assert.ok(enqueuedAt <= startedAt, outcome);
      if (outcome !== 'lost')
        assert.ok(finishedAt !== undefined && finishedAt >= startedAt, outcome);
    }
    const { sourceStreamId = '', sourceEventId = '' } = message ?? {};
    const [bySource] = await ledger.bySource([{ sourceStreamId, sourceEventId }]);
    assert.deepEqual(bySource?.jobs, stored);
  },

  async 'only the last jobs of a message are kept'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    for (let nth = 1; nth <= jobsKept + 2; nth += 1) {
      await ledger.markFailed(await renewedOf(ledger, await claimOne(ledger)), 'no', past);
    }
    const attempts = (await ledger.find(id))?.jobs?.map(({ attempt }) => attempt);
    assert.deepEqual(
      [attempts?.length, attempts?.[0], attempts?.at(-1)],
      [jobsKept, 3, jobsKept + 2],
    );
  },

  async 'rejects invalid renewals'(_opened, ledger) {
    assert.deepEqual(await ledger.renew([], request), []);
    assert.deepEqual(await ledger.extend([]), []);
    await rejectsWith(() => ledger.renew([], { workerId: '' }), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.renew([], { ...request, leaseMs: 0 }), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.extend([], { leaseMs: 1.5 }), 'OUTBOX_INVALID');
  },
};

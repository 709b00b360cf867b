import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import {
  claim,
  claimAgain,
  claimAndDie,
  claimOne,
  enqueued,
  future,
  newMessage,
  past,
  statusOf,
  type LedgerCases,
} from './fixture.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';
import type { OutboxFilter, OutboxLedger, OutboxPage } from '../../../outbox/outbox-ledger.ts';
import type {
  ClaimedMessage,
  DeliveryAttempt,
  OutboxMessage,
} from '../../../outbox/outbox-message.ts';

export const settleCases: LedgerCases = {
  async 'a sent message is SENT with its time, and is never claimed again'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    assert.equal(await ledger.markSent(await claimOne(ledger)), 'settled');
    const found = await ledger.find(id);
    assert.equal(found?.status, 'SENT');
    assert.ok(found.sentAt !== undefined);
    assert.equal(found.lockedBy, undefined);
    assert.deepEqual(await claim(ledger), []);
  },

  async 'a sent message keeps its number of failed attempts'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    await ledger.markFailed(await claimOne(ledger), 'HTTP 503', past);
    await ledger.markSent(await claimOne(ledger));
    const found = await ledger.find(id);
    assert.equal(found?.attempts, 1);
    assert.equal(found.lastError, 'HTTP 503');
  },

  async 'a failed message is FAILED, with its error, its attempts and its time'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    assert.equal(await ledger.markFailed(await claimOne(ledger), 'HTTP 503', future), 'settled');
    const found = await ledger.find(id);
    assert.equal(found?.status, 'FAILED');
    assert.equal(found.attempts, 1);
    assert.equal(found.lastError, 'HTTP 503');
    assert.equal(found.dueAt.getTime(), future.getTime());
    assert.equal(found.lockedBy, undefined);
  },

  async 'attempts add up'(_opened, ledger) {
    await enqueued(ledger, {});
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const claimed = await claimOne(ledger);
      assert.equal(claimed.attempts, attempt);
      assert.equal(claimed.starts, attempt + 1);
      await ledger.markFailed(claimed, `no ${attempt}`, past);
    }
    assert.equal((await claimOne(ledger)).lastError, 'no 3');
  },

  async 'a dead message is DEAD, with its error, and is not claimed'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    assert.equal(await ledger.deadLetter(await claimOne(ledger), 'HTTP 400'), 'settled');
    const found = await ledger.find(id);
    assert.equal(found?.status, 'DEAD');
    assert.equal(found.attempts, 1);
    assert.equal(found.lastError, 'HTTP 400');
    assert.deepEqual(await claim(ledger), []);
  },

  async 'stores the attempts of a message, and the cause of the last one'(_opened, ledger) {
    const [id = '', other = ''] = await enqueued(ledger, {}, {});
    const claims = await claim(ledger);
    const mine = claims.find((each) => each.id === id) ?? assert.fail('missing');
    const theirs = claims.find((each) => each.id === other) ?? assert.fail('missing');
    const failed = attemptOf({ error: 'HTTP 503: Zoë 🙂 "x"' });
    const outcomes = [
      { kind: 'failed', claim: mine, error: 'HTTP 503', nextDueAt: past, attempt: failed },
      { kind: 'sent', claim: theirs },
    ] as const;
    assert.deepEqual(await ledger.settle(outcomes), ['settled', 'settled']);
    assert.deepEqual((await ledger.find(id))?.cause, failed.cause);
    const dead = attemptOf({ outcome: 'dead', cause: { fingerprint: 'fedcba987654' } });
    const again = await claimOne(ledger);
    await ledger.settle([{ kind: 'dead', claim: again, error: 'no', attempt: dead }]);
    assert.deepEqual(await ledger.attemptLog(id), [failed, dead]);
    const [listed] = await ledger.list({ status: 'DEAD' });
    assert.deepEqual(listed?.cause, dead.cause);
    assert.deepEqual(await ledger.attemptLog(other), []);
    assert.deepEqual(await ledger.attemptLog('unknown'), []);
    await ledger.replay({ ids: [id] });
    const sent = attemptOf({ outcome: 'sent', error: undefined, cause: undefined });
    await ledger.settle([{ kind: 'sent', claim: await claimOne(ledger), attempt: sent }]);
    assert.deepEqual((await ledger.attemptLog(id)).length, 3);
    assert.equal((await ledger.find(id))?.cause, undefined);
    assert.equal(await ledger.purge(future), 2);
    assert.deepEqual(await ledger.attemptLog(id), []);
  },

  async 'keeps only the newest attempts, and none of a stale claim or an erased person'(
    _opened,
    ledger,
  ) {
    const message = newMessage();
    const [{ id } = assert.fail('missing')] = await ledger.enqueueMany([message]);
    const late = await claimAndDie(ledger);
    let owner = await claimAgain(ledger);
    for (let at = 0; at < outboxLimits.attemptsKept + 2; at += 1) {
      const attempt = attemptOf({ durationMs: at });
      const results = await ledger.settle([
        { kind: 'failed', claim: late, error: 'no', nextDueAt: past, attempt },
        { kind: 'failed', claim: owner, error: 'no', nextDueAt: past, attempt },
      ]);
      assert.deepEqual(results, ['stale', 'settled']);
      owner = await claimOne(ledger);
    }
    assert.deepEqual(
      (await ledger.attemptLog(id)).map(({ durationMs }) => durationMs),
      Array.from({ length: outboxLimits.attemptsKept }, (_, at) => at + 2),
    );
    const forgotten = { $forgotten: { subject: 'zelda', forgottenAt: '2026-01-01T00:00:00.000Z' } };
    await ledger.erase([message], forgotten);
    assert.deepEqual(await ledger.attemptLog(id), []);
  },

  async 'a released message is PENDING again, as if it had not been claimed'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    assert.equal(await ledger.release(await claimOne(ledger)), 'settled');
    const found = await ledger.find(id);
    assert.equal(found?.status, 'PENDING');
    assert.equal(found.lockedBy, undefined);
    const again = await claimOne(ledger);
    assert.equal(again.attempts, 0);
    assert.equal(again.starts, 1);
  },

  async 'releasing a message until a time does not count as an attempt'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    assert.equal(await ledger.release(await claimOne(ledger), future), 'settled');
    assert.deepEqual(await claim(ledger), []);
    const found = await ledger.find(id);
    assert.equal(found?.status, 'PENDING');
    assert.equal(found.attempts, 0);
    assert.equal(found.dueAt.getTime(), future.getTime());
  },

  async 'a late owner is stale once another one has claimed'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    const late = await claimAndDie(ledger);
    const owner = await claimAgain(ledger);
    assert.equal(await ledger.markSent(late), 'stale');
    assert.equal(await ledger.markFailed(late, 'no', past), 'stale');
    assert.equal(await ledger.deadLetter(late, 'no'), 'stale');
    assert.equal(await ledger.release(late), 'stale');
    assert.equal(await ledger.release(late, future), 'stale');
    assert.equal(await statusOf(ledger, id), 'CLAIMED');
    assert.equal(await ledger.markSent(owner), 'settled');
  },

  async 'a late owner is stale, even in the batch in which the current owner settles'(
    _opened,
    ledger,
  ) {
    await enqueued(ledger, {});
    const late = await claimAndDie(ledger);
    const owner = await claimAgain(ledger);
    const results = await ledger.settle([
      { kind: 'dead', claim: late, error: 'no' },
      { kind: 'sent', claim: owner },
    ]);
    assert.deepEqual(results, ['stale', 'settled']);
    assert.equal(await statusOf(ledger, owner.id), 'SENT');
  },

  async 'an older claim is stale next to outcomes of a newer one'(_opened, ledger) {
    await enqueued(ledger, {}, {});
    const late = await claimAndDie(ledger);
    const claimed = new Map<string, ClaimedMessage>();
    await eventually('both are claimed by one', async () => {
      for (const each of await claim(ledger)) claimed.set(each.id, each);
      return claimed.size === 2;
    });
    const other = [...claimed.values()].find(({ id }) => id !== late.id) ?? assert.fail();
    const results = await ledger.settle([
      { kind: 'sent', claim: late },
      { kind: 'sent', claim: other },
    ]);
    assert.deepEqual(results, ['stale', 'settled']);
    assert.equal(await statusOf(ledger, late.id), 'CLAIMED');
    assert.equal(await ledger.markSent(claimed.get(late.id) ?? assert.fail()), 'settled');
  },

  async 'outcomes of many claims are settled together, and release the next of each key'(
    _opened,
    ledger,
  ) {
    for (const count of [2, 3, 12]) {
      const keys = Array.from({ length: count }, (_, at) => ({ orderingKey: `${count} ${at}` }));
      await enqueued(ledger, ...keys, {}, ...keys);
      const claimed: ClaimedMessage[] = [];
      for (let at = 0; at <= count; at += 1) claimed.push(...(await claim(ledger, 1)));
      assert.deepEqual(await claim(ledger), []);
      const sent = claimed.map((each) => ({ kind: 'sent', claim: each }) as const);
      assert.ok((await ledger.settle(sent)).every((result) => result === 'settled'));
      assert.ok((await ledger.settle(sent)).every((result) => result === 'stale'));
      const next = await claim(ledger);
      assert.equal(next.length, count);
      const freed = new Set(next.map(({ orderingKey }) => orderingKey));
      assert.deepEqual(freed, new Set(keys.map(({ orderingKey }) => orderingKey)));
      await ledger.settle(next.map((each) => ({ kind: 'sent', claim: each })));
    }
    const { SENT } = await ledger.counts();
    assert.equal(SENT, 2 * (2 + 3 + 12) + 3);
  },

  async 'a late owner may settle a message that no other process has claimed'(_opened, ledger) {
    await enqueued(ledger, {});
    const late = await claimAndDie(ledger);
    assert.equal(await ledger.markSent(late), 'settled');
  },

  async 'a claim is settled once'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    assert.equal(await ledger.markSent(claimed), 'settled');
    assert.equal(await ledger.markSent(claimed), 'stale');
    assert.equal(await ledger.markFailed(claimed, 'no', past), 'stale');
    assert.equal(await statusOf(ledger, id), 'SENT');
  },

  async 'only one of two outcomes of one claim in a batch counts'(_opened, ledger) {
    await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    const sent = { kind: 'sent', claim: claimed } as const;
    const results = await ledger.settle([sent, sent]);
    assert.deepEqual(results.toSorted(), ['settled', 'stale']);
  },

  async 'a released claim is stale'(_opened, ledger) {
    await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    await ledger.release(claimed);
    assert.equal(await ledger.markSent(claimed), 'stale');
    assert.equal((await claim(ledger)).length, 1);
  },

  async 'unknown tokens settle nothing'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    for (const token of [
      '',
      '0',
      '1',
      '1.0',
      '0.0',
      'x',
      '1.1.1',
      '99999999999999999999.1',
      '-1.1',
    ]) {
      assert.equal(await ledger.markSent({ id, token }), 'stale', token);
    }
    assert.equal(await statusOf(ledger, id), 'PENDING');
  },

  async 'a batch of outcomes is decided one by one'(_opened, ledger) {
    const ids = await enqueued(ledger, {}, {}, {}, {}, {});
    const claimed = new Map((await claim(ledger)).map((each) => [each.id, each]));
    const at = (index: number) => claimed.get(ids[index] ?? '') ?? assert.fail('not claimed');
    const results = await ledger.settle([
      { kind: 'sent', claim: at(0) },
      { kind: 'failed', claim: at(1), error: 'a', nextDueAt: future },
      { kind: 'sent', claim: { ...at(2), token: '7.999999' } },
      { kind: 'dead', claim: at(3), error: 'b' },
      { kind: 'released', claim: at(4) },
    ]);
    assert.deepEqual(results, ['settled', 'settled', 'stale', 'settled', 'settled']);
    const statuses = await Promise.all(ids.map((id) => statusOf(ledger, id)));
    assert.deepEqual(statuses, ['SENT', 'FAILED', 'CLAIMED', 'DEAD', 'PENDING']);
  },

  async 'settling no outcomes changes nothing'(_opened, ledger) {
    assert.deepEqual(await ledger.settle([]), []);
  },

  async 'truncates errors at 5,000 characters and accepts any character'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, {});
    const error = `\u0000 \ud800 🙂 ${'x'.repeat(10_000)}`;
    await ledger.markFailed(await claimOne(ledger), error, past);
    const lastError = (await ledger.find(id))?.lastError ?? '';
    assert.equal(lastError.length, outboxLimits.lastErrorMax);
    assert.match(lastError, /🙂 x+$/u);
    await ledger.deadLetter(await claimOne(ledger), error);
    assert.equal((await ledger.find(id))?.lastError?.length, outboxLimits.lastErrorMax);
  },

  async 'rejects invalid times'(_opened, ledger) {
    await enqueued(ledger, {});
    const claimed = await claimOne(ledger);
    const never = new Date(Number.NaN);
    await rejectsWith(() => ledger.markFailed(claimed, 'no', never), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.release(claimed, never), 'OUTBOX_INVALID');
    assert.equal(await ledger.markSent(claimed), 'settled');
  },
};

export const operatingCases: LedgerCases = {
  async 'counts messages by status'(_opened, ledger) {
    await enqueued(ledger, ...Array.from({ length: 4 }, () => ({})), { dueAt: future });
    const [sent, dead, failed] = await claim(ledger, 4);
    assert.ok(sent !== undefined && dead !== undefined && failed !== undefined);
    await ledger.markSent(sent);
    await ledger.deadLetter(dead, 'no');
    await ledger.markFailed(failed, 'no', future);
    assert.deepEqual(await ledger.counts(), {
      PENDING: 1,
      CLAIMED: 1,
      SENT: 1,
      FAILED: 1,
      DEAD: 1,
      DISCARDED: 0,
    });
  },

  async 'an unknown id is not found'(_opened, ledger) {
    assert.equal(await ledger.find('0193b3a0-0000-7000-8000-000000000000'), undefined);
    assert.equal(await ledger.find('no id at all'), undefined);
  },

  async 'the list is filtered by status, destination, tenant and time, newest first'(
    _opened,
    ledger,
  ) {
    const enqueuedIds = await enqueued(
      ledger,
      { tenantId: 'b' },
      { tenantId: 'a' },
      { tenantId: 'a', integrationType: 'kafka:payments' },
    );
    const ids = enqueuedIds.toReversed();
    const idsOf = async (filter: Parameters<typeof ledger.list>[0]): Promise<readonly string[]> =>
      (await ledger.list(filter)).map(({ id }) => id);
    assert.deepEqual(await idsOf({}), ids);
    assert.deepEqual(await idsOf({ tenantId: 'a' }), ids.slice(0, 2));
    assert.deepEqual(await idsOf({ integrationType: 'kafka:payments' }), ids.slice(0, 1));
    assert.deepEqual(await idsOf({ ids: [ids[2] ?? ''] }), ids.slice(2));
    assert.deepEqual(await idsOf({ since: past }), ids);
    assert.deepEqual(await idsOf({ since: future }), []);
    assert.deepEqual(await idsOf({ status: 'PENDING', tenantId: 'b' }), ids.slice(2));
    for (const status of ['CLAIMED', 'SENT', 'FAILED', 'DEAD'] as const) {
      assert.deepEqual(await idsOf({ status }), []);
    }
  },

  async 'messages are found by their event, oldest first'(_opened, ledger) {
    const [sourceStreamId, sourceEventId] = ['paymenthub.payment.v1-core-p9', 'e9'];
    const source = { sourceStreamId, sourceEventId };
    const other = { sourceStreamId: `${sourceStreamId}0`, sourceEventId };
    const [first, second, third] = await enqueued(
      ledger,
      { ...source, integrationType: 'webhook:b' },
      { ...other },
      { ...source, integrationType: 'webhook:a' },
      { sourceStreamId, sourceEventId: 'e8' },
    );
    const idsOf = async (...args: Parameters<typeof ledger.bySource>): Promise<string[]> =>
      (await ledger.bySource(...args)).map(({ id }) => id);
    assert.deepEqual(await idsOf([source]), [first, third]);
    assert.deepEqual(await idsOf([other, source]), [first, second, third]);
    assert.deepEqual(await idsOf([other, source], 2), [first, second]);
    assert.deepEqual(await idsOf([]), []);
    const strange = ['none', '\u0000', '\ud800', 'x'.repeat(300)];
    const sources = strange.map((each) => ({ ...source, sourceEventId: each }));
    assert.deepEqual(await idsOf(sources), []);
    await ledger.deadLetter(await claimNamed(ledger, first), 'HTTP 400');
    const [dead] = await ledger.bySource([source]);
    assert.ok(dead !== undefined && !('payload' in dead) && !('headers' in dead));
    assert.deepEqual([dead.status, dead.attempts, dead.lastError], ['DEAD', 1, 'HTTP 400']);
    const many = Array.from({ length: 1_001 }, () => source);
    await rejectsWith(() => ledger.bySource(many), 'OUTBOX_INVALID');
  },

  async 'erases the messages of an event in every state, and no other message'(_opened, ledger) {
    const source = { sourceStreamId: 'crm.contact.v1-core-c1', sourceEventId: 'e1' };
    const secret = { payload: { name: 'Zelda' }, headers: { name: 'Zelda' } };
    const kinds = ['sent', 'dead', 'failed', 'pending'];
    const ids = await enqueued(
      ledger,
      ...kinds.map((kind) => ({ ...source, ...secret, integrationType: `webhook:${kind}` })),
      { ...source, ...secret, sourceEventId: 'e2' },
    );
    const claimed = new Map((await claim(ledger)).map((each) => [each.id, each]));
    const [sent, dead, failed] = ids.map((id) => claimed.get(id));
    assert.ok(sent !== undefined && dead !== undefined && failed !== undefined);
    await ledger.markSent(sent);
    await ledger.deadLetter(dead, 'rejected: Zelda');
    await ledger.markFailed(failed, 'rejected: Zelda', future);
    const forgotten = { $forgotten: { subject: 'zelda', forgottenAt: '2026-01-01T00:00:00.000Z' } };
    await ledger.erase([source], forgotten);
    const messages = await ledger.list({}, { oldestFirst: true });
    assert.deepEqual(
      messages.map(({ id, payload, lastError }) => [id, payload, lastError]),
      ids.map((id, at) => [id, at < 4 ? forgotten : secret.payload, undefined]),
    );
    assert.equal(JSON.stringify(messages.slice(0, 4)).includes('Zelda'), false);
    assert.deepEqual(
      messages.map(({ status }) => status),
      ['SENT', 'DEAD', 'FAILED', 'CLAIMED', 'CLAIMED'],
    );
    await ledger.erase([], forgotten);
  },

  async 'pages of the list have every message once, also while messages arrive'(_opened, ledger) {
    // One commit: all have the same time.
    const ids = await enqueued(ledger, ...Array.from({ length: 5 }, () => ({})));
    const dead = await claimNamed(ledger, ids[3]);
    await ledger.deadLetter(dead, 'HTTP 400');
    const pagesOf = async (page: OutboxPage, filter: OutboxFilter = {}): Promise<string[]> => {
      const seen: string[] = [];
      for (let after: string | undefined; ;) {
        const found = await ledger.list(filter, { ...page, after });
        if (found.length === 0) return seen;
        seen.push(...found.map(({ id }) => id));
        assert.ok(seen.length < 20, 'the pages do not end');
        after = seen.at(-1);
        if (seen.length < ids.length) await enqueued(ledger, {});
      }
    };
    assert.deepEqual(await pagesOf({ limit: 2 }), ids.toReversed());
    const oldest = await pagesOf({ limit: 2, oldestFirst: true });
    assert.deepEqual(oldest.slice(0, 5), ids);
    assert.equal(oldest.length, new Set(oldest).size);
    const newest = await ledger.list({}, { limit: 5, charsMax: 1 });
    assert.deepEqual(
      newest.map(({ id }) => id),
      oldest.slice(-1),
    );
    const short = await ledger.list({}, { limit: 5, charsMax: 1, oldestFirst: true });
    assert.deepEqual(
      short.map(({ id }) => id),
      ids.slice(0, 1),
    );
    assert.deepEqual(await pagesOf({ limit: 1 }, { status: 'DEAD' }), [ids[3]]);
    await rejectsWith(() => ledger.list({}, { limit: 0 }), 'OUTBOX_INVALID');
    await rejectsWith(() => ledger.list({ ids: ['no id'] }), 'OUTBOX_INVALID');
  },

  async 'a replayed message has all its attempts left'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, { maxAttempts: 2 });
    await ledger.markFailed(await claimOne(ledger), 'one', past);
    await ledger.deadLetter(await claimOne(ledger), 'two');
    assert.equal(await ledger.replay({ ids: [id] }), 1);
    assert.equal(await statusOf(ledger, id), 'PENDING');
    const again = await claimOne(ledger);
    assert.equal(again.attempts, 0);
    assert.equal(again.starts, 1);
    assert.equal(again.lastError, 'two');
  },

  async 'only dead messages are replayed'(_opened, ledger) {
    const ids = await enqueued(ledger, {}, {}, {});
    const [sent] = await claim(ledger, 1);
    assert.ok(sent !== undefined);
    await ledger.markSent(sent);
    assert.equal(await ledger.replay({ ids }), 0);
    assert.equal(await ledger.replay({}), 0);
  },

  async 'dead messages are replayed by destination, tenant, time and number'(_opened, ledger) {
    await enqueued(
      ledger,
      { tenantId: 'a', integrationType: 'kafka:payments' },
      { tenantId: 'a' },
      { tenantId: 'b' },
      { tenantId: 'c' },
    );
    const claimed = await claim(ledger);
    await ledger.settle(claimed.map((each) => ({ kind: 'dead', claim: each, error: 'no' })));
    assert.equal(await ledger.replay({ since: future }), 0);
    assert.equal(await ledger.replay({ integrationType: 'kafka:payments' }), 1);
    assert.equal(await ledger.replay({ tenantId: 'a' }), 1);
    assert.equal(await ledger.replay({ since: past }, 1), 1);
    assert.equal(await ledger.replay({}), 1);
    assert.equal((await claim(ledger)).length, 4);
  },

  async 'purges only old sent messages, a batch at a time'(_opened, ledger) {
    const items = Array.from({ length: 6 }, () => newMessage());
    await ledger.enqueueMany(items);
    const claimed = await claim(ledger, 5);
    await ledger.settle(claimed.slice(0, 4).map((each) => ({ kind: 'sent', claim: each })));
    await ledger.deadLetter(claimed[4] ?? assert.fail(), 'no');
    assert.equal(await ledger.purge(past), 0);
    assert.equal(await ledger.purge(future, 3), 3);
    assert.equal(await ledger.purge(future, 3), 1);
    assert.equal(await ledger.purge(future, 3), 0);
    assert.deepEqual(await ledger.counts(), {
      PENDING: 1,
      CLAIMED: 0,
      SENT: 0,
      FAILED: 0,
      DEAD: 1,
      DISCARDED: 0,
    });
    // After the purge, the event of a message is no longer recognized as a duplicate.
    const again = await ledger.enqueueMany(items);
    assert.equal(again.filter(({ isDuplicate }) => !isDuplicate).length, 4);
  },

  async 'archives complete old sent messages and purges them afterwards'(_opened, ledger) {
    await ledger.enqueueMany(Array.from({ length: 5 }, () => newMessage({ headers: { h: 1 } })));
    const claimed = await claim(ledger, 4);
    for (const each of claimed.slice(0, 3)) await ledger.markSent(each);
    const first = claimed.slice(0, 3).map(({ id }) => id);
    const archived: OutboxMessage[] = [];
    const keep = async (messages: readonly OutboxMessage[]): Promise<void> => {
      for (const { id } of messages) assert.equal((await ledger.find(id))?.status, 'SENT');
      archived.push(...messages);
    };
    assert.equal(await ledger.archive(past, () => assert.fail('there is none')), 0);
    const [expected] = await ledger.list({ ids: first.slice(0, 1) });
    assert.equal(await ledger.archive(future, keep, 2), 2);
    assert.equal((await ledger.counts()).SENT, 1);
    assert.equal(await ledger.archive(future, keep, 2), 1);
    assert.equal(await ledger.archive(future, keep, 2), 0);
    assert.deepEqual(new Set(archived.map(({ id }) => id)), new Set(first));
    assert.deepEqual(
      archived.find(({ id }) => id === first[0]),
      expected,
    );
    const counts = await ledger.counts();
    assert.deepEqual([counts.PENDING, counts.CLAIMED, counts.SENT], [1, 1, 0]);
  },

  async 'a failing archive purges nothing'(_opened, ledger) {
    await enqueued(ledger, {}, {});
    for (const each of await claim(ledger, 2)) await ledger.markSent(each);
    const full = new Error('the disk is full');
    await assert.rejects(
      ledger.archive(future, () => Promise.reject(full)),
      full,
    );
    assert.equal((await ledger.counts()).SENT, 2);
  },

  async 'claims messages of other destinations, not of a paused one'(_opened, ledger) {
    const [paused = '', other] = await enqueued(ledger, {}, { integrationType: 'kafka:payments' });
    assert.equal(await ledger.pause('webhook:partner-x', 'ops'), true);
    assert.equal(await ledger.pause('webhook:partner-x', 'ops'), false);
    assert.equal((await claimOne(ledger)).id, other);
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await statusOf(ledger, paused), 'PENDING');
    const [entry] = await ledger.paused();
    assert.equal(entry?.integrationType, 'webhook:partner-x');
    assert.equal(entry.pausedBy, 'ops');
  },

  async 'a resumed destination continues with all waiting messages'(_opened, ledger) {
    await enqueued(ledger, {});
    await ledger.pause('webhook:partner-x', 'ops');
    assert.deepEqual(await claim(ledger), []);
    await enqueued(ledger, {}, {});
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await ledger.resume('webhook:partner-x'), true);
    assert.equal(await ledger.resume('webhook:partner-x'), false);
    assert.deepEqual(await ledger.paused(), []);
    assert.equal((await claim(ledger)).length, 3);
  },

  async 'messages claimed before the pause are sent'(_opened, ledger) {
    await enqueued(ledger, {}, {});
    const [sent, failed] = await claim(ledger);
    assert.ok(sent !== undefined && failed !== undefined);
    await ledger.pause('webhook:partner-x', 'ops');
    assert.equal(await ledger.markSent(sent), 'settled');
    assert.equal(await ledger.markFailed(failed, 'no', past), 'settled');
    assert.deepEqual(await claim(ledger), []);
    await ledger.resume('webhook:partner-x');
    const again = await claimOne(ledger);
    assert.equal(again.attempts, 1);
    assert.equal(again.starts, 2);
  },

  async 'a paused destination keeps the order of its keys'(_opened, ledger) {
    const ids = await enqueued(ledger, { orderingKey: 'k' }, { orderingKey: 'k' });
    await ledger.pause('webhook:partner-x', 'ops');
    assert.deepEqual(await claim(ledger), []);
    await ledger.resume('webhook:partner-x');
    const first = await claimOne(ledger);
    assert.equal(first.id, ids[0]);
    await ledger.markSent(first);
    assert.equal((await claimOne(ledger)).id, ids[1]);
  },
};

async function claimNamed(ledger: OutboxLedger, id: string | undefined): Promise<ClaimedMessage> {
  const found = (await claim(ledger)).find((each) => each.id === id);
  assert.ok(found !== undefined, 'the message could not be claimed');
  return found;
}

function attemptOf(fields: Partial<DeliveryAttempt>): DeliveryAttempt {
  const attempt = {
    at: '2025-09-30T10:00:00.123Z',
    durationMs: 21,
    status: 503,
    headers: { 'webhook-id': 'w-1', authorization: '•••' },
    answer: 'Zoë \u2028 "busy" 🙂',
    outcome: 'failed',
    error: 'HTTP 503',
    cause: { name: 'Error', code: 'E1', stack: '    at x (y.ts:1:2)', fingerprint: '0123456789ab' },
    ...fields,
  } as const;
  return JSON.parse(JSON.stringify(attempt)) as DeliveryAttempt;
}

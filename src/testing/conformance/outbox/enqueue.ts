import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import {
  claim,
  claimOne,
  enqueued,
  future,
  newMessage,
  past,
  statusOf,
  type LedgerCases,
} from './fixture.ts';
import { createOutboxDispatcher } from '../../../outbox/outbox-dispatcher.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';

export const enqueueCases: LedgerCases = {
  async 'returns a message with all enqueued fields'(_opened, ledger) {
    const item = newMessage({
      payload: { text: 'Zoë "quoted" \n 🙂', amount: 12.5, none: null, list: [1, { a: true }] },
      headers: { idempotencyKey: 'k1', nested: { b: [] } },
      tenantId: 'core',
      userId: 'u1',
      correlationId: 'c1',
      orderingKey: 'p1',
      maxAttempts: 3,
      dueAt: past,
    });
    const returned = await ledger.enqueue(item);
    const found = await ledger.find(returned.id);
    assert.deepEqual({ ...found, isDuplicate: false }, returned);
    const { dueAt, ...given } = item;
    for (const [name, value] of Object.entries(given)) {
      assert.deepEqual(found?.[name as keyof typeof found], value, name);
    }
    assert.equal(found?.dueAt.getTime(), dueAt?.getTime());
  },

  async 'a new message is PENDING, due now, with ten attempts left'(_opened, ledger) {
    const { id, isDuplicate } = await ledger.enqueue(newMessage());
    assert.equal(isDuplicate, false);
    const found = await ledger.find(id);
    assert.equal(found?.status, 'PENDING');
    assert.equal(found.attempts, 0);
    assert.equal(found.maxAttempts, 10);
    assert.equal(found.lockedAt, undefined);
    assert.equal(found.lockedBy, undefined);
    assert.equal(found.sentAt, undefined);
    assert.equal(found.lastError, undefined);
    assert.equal(found.headers, undefined);
    assert.equal(found.tenantId, undefined);
    assert.equal(found.userId, undefined);
    assert.equal(found.correlationId, undefined);
    assert.ok(Math.abs(found.dueAt.getTime() - found.createdAt.getTime()) < 5_000);
  },

  async 'returns the failed attempts of a message by its id'(_opened, ledger) {
    const { id } = await ledger.enqueue(newMessage());
    assert.equal(await ledger.getAttempts(id), 0);
    await ledger.markFailed(await claimOne(ledger), 'HTTP 503', new Date(Date.now() + 60_000));
    assert.equal(await ledger.getAttempts(id), 1);
    for (const unknown of ['01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77', 'no id']) {
      await rejectsWith(() => ledger.getAttempts(unknown), 'OUTBOX_UNKNOWN');
    }
  },

  async 'the same event for the same destination is stored once, and reported as a duplicate'(
    _opened,
    ledger,
  ) {
    const item = newMessage();
    const first = await ledger.enqueue(item);
    const second = await ledger.enqueue({ ...item, payload: { other: true } });
    assert.deepEqual(second, { ...first, isDuplicate: true });
    assert.deepEqual((await claimOne(ledger)).payload, item.payload);
  },

  async 'stores one message per destination of an event'(_opened, ledger) {
    const item = newMessage();
    await ledger.enqueue(item);
    const other = await ledger.enqueue({ ...item, integrationType: 'kafka:payments' });
    assert.equal(other.isDuplicate, false);
    assert.equal((await claim(ledger)).length, 2);
  },

  async 'the same event id in another stream is another event'(_opened, ledger) {
    const item = newMessage();
    await ledger.enqueue(item);
    assert.equal((await ledger.enqueue({ ...item, sourceStreamId: 'other-s' })).isDuplicate, false);
  },

  async 'a batch reports new messages and duplicates, also within itself'(_opened, ledger) {
    const [a, b] = [newMessage(), newMessage()];
    const known = await ledger.enqueue(a);
    const results = await ledger.enqueueMany([b, a, b]);
    assert.deepEqual(
      results.map(({ isDuplicate }) => isDuplicate),
      [false, true, true],
    );
    assert.equal(results[1]?.id, known.id);
    assert.equal(results[0]?.id, results[2]?.id);
    assert.equal((await claim(ledger)).length, 2);
  },

  async 'a duplicate of a sent message is still a duplicate'(_opened, ledger) {
    const item = newMessage();
    await ledger.enqueue(item);
    await ledger.markSent(await claimOne(ledger));
    assert.equal((await ledger.enqueue(item)).isDuplicate, true);
    assert.deepEqual(await claim(ledger), []);
  },

  async 'concurrent enqueues of the same event store it once'(_opened, ledger) {
    const item = newMessage();
    const results = await Promise.all(Array.from({ length: 20 }, () => ledger.enqueue(item)));
    assert.equal(results.filter(({ isDuplicate }) => !isDuplicate).length, 1);
    assert.equal(new Set(results.map(({ id }) => id)).size, 1);
  },

  async 'an empty batch stores nothing'(_opened, ledger) {
    assert.deepEqual(await ledger.enqueueMany([]), []);
  },

  async 'a batch is written whole or not at all'(_opened, ledger) {
    const bad = newMessage({ tenantId: 'x'.repeat(61) });
    await rejectsWith(() => ledger.enqueueMany([newMessage(), bad]), 'OUTBOX_INVALID');
    assert.deepEqual(await ledger.list({}), []);
  },

  async 'a message that is due later stays PENDING and is not claimed'(_opened, ledger) {
    const [id = ''] = await enqueued(ledger, { dueAt: future });
    assert.deepEqual(await claim(ledger), []);
    assert.equal(await statusOf(ledger, id), 'PENDING');
    assert.equal((await ledger.find(id))?.dueAt.getTime(), future.getTime());
  },

  async 'rejects strings above the column size, naming the field'(_opened, ledger) {
    const limits = outboxLimits;
    const tooLong = [
      { sourceStreamId: 'x'.repeat(limits.sourceStreamIdMax + 1) },
      { sourceEventId: 'x'.repeat(limits.sourceEventIdMax + 1) },
      { integrationType: 'x'.repeat(limits.integrationTypeMax + 1) },
      { eventType: 'x'.repeat(limits.eventTypeMax + 1) },
      { userId: 'x'.repeat(limits.userIdMax + 1) },
      { correlationId: 'x'.repeat(limits.correlationIdMax + 1) },
      { integrationType: '' },
      { tenantId: 'a\u0000b' },
    ];
    for (const fields of tooLong) {
      const error = await rejectsWith(() => ledger.enqueue(newMessage(fields)), 'OUTBOX_INVALID');
      assert.equal(error.details['field'], Object.keys(fields)[0]);
    }
  },

  async 'stores strings of the maximum length'(_opened, ledger) {
    const item = newMessage({
      sourceStreamId: 'ä'.repeat(200),
      sourceEventId: 'ö'.repeat(100),
      integrationType: 'ü'.repeat(120),
      eventType: 'é'.repeat(120),
      tenantId: 'ß'.repeat(60),
      correlationId: 'ø'.repeat(120),
    });
    const { id } = await ledger.enqueue(item);
    assert.equal((await ledger.find(id))?.sourceStreamId, item.sourceStreamId);
  },

  async 'rejects payloads that JSON would change and stores payloads that JSON preserves'(
    _opened,
    ledger,
  ) {
    await rejectsWith(
      () => ledger.enqueue(newMessage({ payload: { n: Number.NaN } })),
      'PAYLOAD_NOT_JSON',
    );
    await rejectsWith(() => ledger.enqueue(newMessage({ payload: [] as never })), 'OUTBOX_INVALID');
    const payload = { zero: 'a\u0000b', half: '\ud800', deep: { 'key with \u0000': 1 } };
    const { id } = await ledger.enqueue(newMessage({ payload }));
    assert.deepEqual((await ledger.find(id))?.payload, payload);
    assert.deepEqual((await claimOne(ledger)).payload, payload);
  },

  async 'rejects invalid attempts and times'(_opened, ledger) {
    for (const maxAttempts of [0, -1, 1.5, Number.NaN, 1e9]) {
      await rejectsWith(() => ledger.enqueue(newMessage({ maxAttempts })), 'OUTBOX_INVALID');
    }
    await rejectsWith(
      () => ledger.enqueue(newMessage({ dueAt: new Date(Number.NaN) })),
      'OUTBOX_INVALID',
    );
  },

  async 'rejects an oversized batch before writing anything'(_opened, ledger) {
    const items = Array.from({ length: outboxLimits.enqueueMax + 1 }, () => newMessage());
    await rejectsWith(() => ledger.enqueueMany(items), 'OUTBOX_INVALID');
    await ledger.enqueueMany(items.slice(1));
    assert.equal((await ledger.counts()).PENDING, outboxLimits.enqueueMax);
  },
};

export const outageCases: LedgerCases = {
  async 'a broken database is reported as an error, never as a duplicate'(opened, ledger) {
    const item = newMessage();
    await ledger.enqueue(item);
    await opened.outage?.();
    await rejectsWith(() => ledger.enqueue(item), 'STORE_UNAVAILABLE');
    await rejectsWith(() => ledger.enqueueMany([item, newMessage()]), 'STORE_UNAVAILABLE');
    await rejectsWith(() => claim(ledger), 'STORE_UNAVAILABLE');
  },

  async 'a damaged message is dead-lettered with its reason, and the others are sent'(
    opened,
    ledger,
  ) {
    if (opened.damage === undefined) return;
    const ids = await enqueued(ledger, {}, {}, {}, {}, {});
    const [text = '', shape = '', headers = '', ...intact] = ids;
    await opened.damage(text, 'payload', '{"paymentId":"p');
    await opened.damage(shape, 'payload', '[1]');
    await opened.damage(headers, 'headers', 'none');
    const sent: string[] = [];
    const deliver = async ({ id }: { readonly id: string }) => void sent.push(id);
    const dispatcher = createOutboxDispatcher({ ledger, deliver });
    await dispatcher.tick();
    await dispatcher[Symbol.asyncDispose]();
    assert.deepEqual(sent.toSorted(), intact.toSorted());
    const dead = await ledger.list({ status: 'DEAD' }, { oldestFirst: true });
    assert.deepEqual(
      dead.map(({ id, payload, lastError }) => [id, payload, lastError]),
      [
        [text, {}, 'the stored payload of the message is not a JSON object'],
        [shape, {}, 'the stored payload of the message is not a JSON object'],
        [headers, {}, 'the stored headers of the message are not a JSON object'],
      ],
    );
  },

  async 'a closed ledger rejects calls'(opened) {
    const other = await opened.second?.();
    await other?.[Symbol.asyncDispose]();
    await rejectsWith(async () => other?.enqueue(newMessage()), 'STORE_CLOSED');
  },

  async 'the view integration_outbox has the columns, defaults and statuses of the outbox document'(
    opened,
    ledger,
  ) {
    const [id] = await enqueued(ledger, { payload: { a: 1 } });
    const [row] = (await opened.readRelation?.()) ?? [];
    assert.deepEqual(Object.keys(row ?? {}), [
      'id',
      'source_stream_id',
      'source_event_id',
      'integration_type',
      'event_type',
      'payload',
      'headers',
      'tenant_id',
      'user_id',
      'correlation_id',
      'due_at',
      'attempts',
      'max_attempts',
      'status',
      'locked_at',
      'locked_by',
      'created_at',
      'updated_at',
      'sent_at',
      'last_error',
    ]);
    const status = async (): Promise<unknown> => (await opened.readRelation?.())?.[0]?.['status'];
    assert.ok(row !== undefined);
    assert.equal(row['id'], id);
    assert.equal(row['attempts'], 0);
    assert.equal(row['max_attempts'], 10);
    assert.equal(row['status'], 'PENDING');
    const first = await claimOne(ledger);
    assert.equal(await status(), 'CLAIMED');
    assert.equal((await opened.readRelation?.())?.[0]?.['locked_by'], 'worker');
    await ledger.markFailed(first, 'HTTP 503', past);
    assert.equal(await status(), 'FAILED');
    await ledger.deadLetter(await claimOne(ledger), 'HTTP 400');
    assert.equal(await status(), 'DEAD');
    await ledger.replay({});
    assert.equal(await status(), 'PENDING');
    await ledger.markSent(await claimOne(ledger));
    assert.equal(await status(), 'SENT');
  },
};

export const transactionCases: LedgerCases = {
  async 'a message in a transaction of the caller exists after the commit'(opened, ledger) {
    const item = newMessage();
    await opened.inTransaction?.(async (transaction) => {
      const [result] = await ledger.enqueueIn(transaction, [item]);
      assert.equal(result?.isDuplicate, false);
      assert.deepEqual(await opened.readRelation?.(), []);
    });
    assert.equal((await claimOne(ledger)).sourceEventId, item.sourceEventId);
  },

  async 'a message in a transaction that is rolled back does not exist'(opened, ledger) {
    const item = newMessage({ orderingKey: 'k' });
    await assert.rejects(async () => {
      await opened.inTransaction?.(async (transaction) => {
        await ledger.enqueueIn(transaction, [item, newMessage({ dueAt: future })]);
        throw new Error('no');
      });
    }, /no/);
    assert.deepEqual(await ledger.list({}), []);
    assert.equal((await ledger.enqueue(item)).isDuplicate, false);
  },

  async 'a duplicate in a transaction of the caller is reported, and the transaction stays usable'(
    opened,
    ledger,
  ) {
    const item = newMessage();
    const { id } = await ledger.enqueue(item);
    const fresh = newMessage();
    await opened.inTransaction?.(async (transaction) => {
      const results = await ledger.enqueueIn(transaction, [item, fresh]);
      assert.deepEqual(results[0], { id, isDuplicate: true });
      assert.equal(results[1]?.isDuplicate, false);
    });
    assert.equal((await claim(ledger)).length, 2);
  },

  async 'a rejected message leaves the transaction of the caller usable'(opened, ledger) {
    await opened.inTransaction?.(async (transaction) => {
      const bad = newMessage({ eventType: '' });
      await rejectsWith(() => ledger.enqueueIn(transaction, [bad]), 'OUTBOX_INVALID');
      await ledger.enqueueIn(transaction, [newMessage()]);
    });
    assert.equal((await claim(ledger)).length, 1);
  },
};

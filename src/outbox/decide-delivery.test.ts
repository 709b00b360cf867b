import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decideDelivery, isPoisonous, withAttempt } from './decide-delivery.ts';
import { outboxLimits } from './outbox-limits.ts';
import type { OutboxOutcome } from './outbox-ledger.ts';
import type { ClaimedMessage } from './outbox-message.ts';

const nowMs = Date.UTC(2025, 8, 30, 10);

function claimed(fields: Partial<ClaimedMessage> = {}): ClaimedMessage {
  const at = new Date(nowMs);
  return {
    id: '0193b3a0-0000-7000-8000-000000000000',
    token: '1.1',
    starts: 1,
    sourceStreamId: 's',
    sourceEventId: 'e',
    integrationType: 'webhook:x',
    eventType: 'payment.completed.v1',
    payload: {},
    headers: undefined,
    tenantId: undefined,
    userId: undefined,
    correlationId: undefined,
    orderingKey: undefined,
    dueAt: at,
    attempts: 0,
    maxAttempts: 10,
    status: 'CLAIMED',
    lockedAt: at,
    lockedBy: 'w',
    createdAt: at,
    updatedAt: at,
    sentAt: undefined,
    lastError: undefined,
    ...fields,
  };
}

function waitMs(outcome: OutboxOutcome): number {
  assert.equal(outcome.kind, 'failed');
  return outcome.kind === 'failed' ? outcome.nextDueAt.getTime() - nowMs : Number.NaN;
}

const retry = { kind: 'retry', error: 'HTTP 503' } as const;

test('waits min(60 s · 2^(n−1), 15 min) after the n-th failure', () => {
  const waits = Array.from({ length: 9 }, (_, attempts) =>
    waitMs(decideDelivery(claimed({ attempts }), retry, { nowMs, random: 0 })),
  );
  assert.deepEqual(
    waits,
    [60, 120, 240, 480, 900, 900, 900, 900, 900].map((s) => s * 1_000),
  );
});

test('adds up to ten seconds at random, and never more', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.integer({ min: 0, max: 8 }),
      (random, attempts) => {
        const outcome = decideDelivery(claimed({ attempts }), retry, { nowMs, random });
        const base = Math.min(60_000 * 2 ** attempts, 900_000);
        assert.ok(waitMs(outcome) >= base && waitMs(outcome) <= base + 10_000);
      },
    ),
  );
});

test('a failure of the last attempt makes the message a dead letter', () => {
  const last = claimed({ attempts: 9 });
  assert.equal(decideDelivery(last, retry, { nowMs }).kind, 'dead');
  assert.equal(decideDelivery(claimed({ maxAttempts: 1 }), retry, { nowMs }).kind, 'dead');
});

test('a result of kind dead makes the message a dead letter immediately', () => {
  const outcome = decideDelivery(claimed(), { kind: 'dead', error: 'HTTP 404' }, { nowMs });
  assert.deepEqual(outcome, {
    kind: 'dead',
    claim: { id: claimed().id, token: '1.1' },
    error: 'HTTP 404',
  });
});

test('the receiver may ask for a longer wait, never for a shorter one, up to a cap', () => {
  const after = (afterMs: number): number =>
    waitMs(decideDelivery(claimed(), { ...retry, afterMs }, { nowMs, random: 0 }));
  assert.equal(after(3_600_000), 3_600_000);
  assert.equal(after(5), 60_000);
  assert.equal(after(-1), 60_000);
  assert.equal(after(Number.MAX_SAFE_INTEGER), 24 * 3_600_000);
  const schedule = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, retryAfterMsMax: 50 };
  const capped = decideDelivery(claimed(), { ...retry, afterMs: 1_000 }, { nowMs, schedule });
  assert.equal(waitMs(capped), 50);
});

test('a message that was not attempted is released for later, without counting an attempt', () => {
  const outcome = decideDelivery(
    claimed({ attempts: 9 }),
    { ...retry, afterMs: 7_000, attempted: false },
    { nowMs },
  );
  assert.equal(outcome.kind, 'released');
  assert.equal(outcome.kind === 'released' ? outcome.dueAt?.getTime() : 0, nowMs + 7_000);
});

test('error texts are truncated to 5,000 characters', () => {
  const outcome = decideDelivery(claimed(), { ...retry, error: 'x'.repeat(9_999) }, { nowMs });
  assert.equal(outcome.kind === 'failed' ? outcome.error.length : 0, 5_000);
});

test('a message that killed every process that started it is recognized', () => {
  assert.equal(isPoisonous(claimed({ starts: 10, maxAttempts: 10 })), false);
  assert.equal(isPoisonous(claimed({ starts: 11, maxAttempts: 10 })), true);
  assert.equal(isPoisonous(claimed({ starts: 11, attempts: 5, maxAttempts: 10 })), false);
});

test('an attempt has its time, the answer up to 2 KiB, the headers and the cause', () => {
  const answer = { status: 503, body: 'x'.repeat(5_000) };
  const request = { headers: { authorization: '•••' } };
  const facts = { name: 'TypeError', code: 'E1' };
  const result = { ...retry, answer, request, facts };
  const times = { startMs: nowMs - 21, nowMs };
  const failed = withAttempt(decideDelivery(claimed(), result, { nowMs }), claimed(), {
    result,
    ...times,
  });
  assert.equal(failed.kind, 'failed');
  const { attempt } = failed;
  const { cause, ...rest } = attempt ?? assert.fail('missing');
  assert.deepEqual(rest, {
    at: new Date(nowMs - 21).toISOString(),
    durationMs: 21,
    status: 503,
    answer: 'x'.repeat(outboxLimits.answerBytesMax),
    headers: request.headers,
    outcome: 'failed',
    error: 'HTTP 503',
  });
  assert.deepEqual([cause?.name, cause?.code, cause?.fingerprint.length], ['TypeError', 'E1', 12]);
});

test('a message that is sent has an attempt only after an earlier one has failed', () => {
  const result = { kind: 'sent', answer: { status: 200, body: 'ok' } } as const;
  const attemptOf = (attempts: number): unknown => {
    const message = claimed({ attempts });
    const outcome = decideDelivery(message, result, { nowMs });
    return withAttempt(outcome, message, { result, startMs: nowMs, nowMs });
  };
  const claim = { id: claimed().id, token: '1.1' };
  assert.deepEqual(attemptOf(0), { kind: 'sent', claim });
  const at = new Date(nowMs).toISOString();
  const attempt = { at, durationMs: 0, status: 200, answer: 'ok', outcome: 'sent' };
  assert.deepEqual(attemptOf(1), { kind: 'sent', claim, attempt });
});

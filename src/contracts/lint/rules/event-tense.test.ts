import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintSource } from '../lint-source.ts';
import { isPastTense, toPastTense } from '../past-tense.ts';
import { assertClean, assertFound } from '../rule-cases.ts';

const reason = /is not in the past tense/;

describe('the tense of event types', () => {
  for (const [code, at, suggestion] of [
    ["defineEvent('payment.complete.v1', s)", "'payment.complete.v1'", "'payment.completed.v1'"],
    ["{ type: 'payment.tags-parse.v1' }", "'payment.tags-parse.v1'", "'payment.tags-parsed.v1'"],
    ["e.type === 'message.send.v1'", "'message.send.v1'", "'message.sent.v1'"],
    ["buildEventType('payment', 'processing', 1)", "'processing'", "'processed'"],
    ["'$et-payment.succeed.v1'", "'$et-payment.succeed.v1'", "'$et-payment.succeeded.v1'"],
    ["{ type: 'payment.completion.v1' }", "'payment.completion.v1'", undefined],
  ] as const) {
    test(`warns about ${code}`, () =>
      assertFound('event-tense', { code, at, reason, ...(suggestion && { suggestion }) }));
  }

  test('is a warning, not an error', async () => {
    const [finding] = await lintSource('a.ts', "defineEvent('payment.complete.v1', s);");
    assert.equal(finding?.severity, 'warning');
  });

  test('says nothing about categories, which look the same', () =>
    assertClean("const category = 'banking.currency.v1'; subscribe('banking.currency.v1');"));

  test('knows regular and irregular participles, first or last', () => {
    const past =
      'created sent paid tags-parsed failed-permanently withdrawn overridden agreed reset';
    for (const action of past.split(' ')) assert.equal(isPastTense(action), true, action);
    const other = 'create sending overdue need succeed embed completion status-change';
    for (const action of other.split(' ')) assert.equal(isPastTense(action), false, action);
  });

  test('turns only verbs that it knows into the past', () => {
    const pairs = {
      create: 'created',
      retry: 'retried',
      stop: 'stopped',
      'status-change': 'status-changed',
      'close-early': 'closed-early',
      submitting: 'submitted',
    };
    for (const [verb, past] of Object.entries(pairs)) assert.equal(toPastTense(verb), past);
    assert.equal(toPastTense('completion'), undefined);
  });
});

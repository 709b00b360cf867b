import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const grammar = /must be <agg>\.<action>\.v<version>/;
const byHand = /use buildEventType/;

const literals: readonly BadCode[] = [
  {
    code: "defineEvent('Payment.Completed.v1', s)",
    at: "'Payment.Completed.v1'",
    reason: grammar,
    suggestion: "'payment.completed.v1'",
  },
  {
    code: 'defineEvent("payment_request.created.v1", s)',
    at: '"payment_request.created.v1"',
    reason: grammar,
    suggestion: "'payment-request.created.v1'",
  },
  {
    code: "defineEvent('PaymentCompleted', s)",
    at: "'PaymentCompleted'",
    reason: grammar,
    suggestion: "'payment.completed.v1'",
  },
  {
    code: "defineEvent('payment.completed', s)",
    at: "'payment.completed'",
    reason: grammar,
    suggestion: "'payment.completed.v1'",
  },
  { code: "defineEvent('payment', s)", at: "'payment'", reason: grammar },
  {
    code: "{ type: 'Payment.Completed.v1' }",
    at: "'Payment.Completed.v1'",
    reason: grammar,
    suggestion: "'payment.completed.v1'",
  },
  {
    code: '{ eventType: `PAYMENT.COMPLETED.V2` as const }',
    at: '`PAYMENT.COMPLETED.V2`',
    reason: grammar,
    suggestion: "'payment.completed.v2'",
  },
  {
    code: "{ type: 'notification.slack.sent.v1' }",
    at: "'notification.slack.sent.v1'",
    reason: grammar,
    suggestion: "'notification-slack.sent.v1'",
  },
  {
    code: "{ type: 'payment.completed.v0' }",
    at: "'payment.completed.v0'",
    reason: grammar,
    suggestion: "'payment.completed.v1'",
  },
  {
    code: "event.type === 'Payment.Failed.v1'",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "'Payment.Failed.v1' !== event?.eventType",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "['Payment.Failed.v1'].includes(event.type)",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "() => { switch (e.type) { case 'Payment.Failed.v1': } }",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "bus.on('Payment.Failed.v1', handle)",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "{ paymentEvents: { failed: 'Payment.Failed.v1' } }",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "{ handledEvents: { 'Payment.Failed.v1': handle } }",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: '<Row type="Payment.Failed.v1" />',
    at: '"Payment.Failed.v1"',
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
  {
    code: "x as { type: 'Payment.Failed.v1' }",
    at: "'Payment.Failed.v1'",
    reason: grammar,
    suggestion: "'payment.failed.v1'",
  },
];

const runs: readonly BadCode[] = [
  ['GuestCheckedOut', 'guest.checked-out.v1'],
  ['message_request_sent_v2', 'message-request.sent.v2'],
  ['HTTPCallFailed', 'http-call.failed.v1'],
].map(([text, type]) => ({
  code: `defineEvent('${text}', s)`,
  at: `'${text}'`,
  reason: grammar,
  suggestion: `'${type}'`,
}));

const computed: readonly BadCode[] = [
  {
    code: '`${agg}.${action}.v${v}`',
    reason: byHand,
    suggestion: 'buildEventType(agg, action, v)',
  },
  {
    code: "agg + '.' + this.action + '.v' + v",
    reason: byHand,
    suggestion: 'buildEventType(agg, this.action, v)',
  },
  {
    code: "[agg, 'created', `v${v}`].join('.')",
    reason: byHand,
    suggestion: "buildEventType(agg, 'created', v)",
  },
  {
    code: '`Payment.${action}.v1`',
    reason: byHand,
    suggestion: "buildEventType('payment', action, 1)",
  },
  {
    code: '`payment.${event.name}-again.v2`',
    reason: byHand,
    suggestion: "buildEventType('payment', `${event.name}-again`, 2)",
  },
  {
    code: '{ type: `payment.${status}.v1` }',
    at: '`payment.${status}.v1`',
    reason: byHand,
    suggestion: "buildEventType('payment', status, 1)",
  },
  {
    code: 'event.type === `payment.${status}.v1`',
    at: '`payment.${status}.v1`',
    reason: byHand,
    suggestion: "buildEventType('payment', status, 1)",
  },
  {
    code: 'defineEvent(`${name}.created.v1`, s)',
    at: '`${name}.created.v1`',
    reason: byHand,
    suggestion: "buildEventType(name, 'created', 1)",
  },
];

const calls: readonly BadCode[] = [
  {
    code: "buildEventType('Payment', 'completed', 1)",
    at: "'Payment'",
    reason: /aggregate 'Payment' must be kebab-case/,
    suggestion: "'payment'",
  },
  {
    code: "contracts.buildEventType(agg, 'was_completed', 1)",
    at: "'was_completed'",
    reason: /action/,
    suggestion: "'was-completed'",
  },
  { code: "buildEventType(agg, 'completed', 0)", at: '0', reason: /version '0'/, suggestion: '1' },
  {
    code: "buildEventType(agg, 'completed', -2)",
    at: '-2',
    reason: /version '-2'/,
    suggestion: '2',
  },
  {
    code: "eventTypeStream('PaymentCompleted')",
    at: "'PaymentCompleted'",
    reason: /event type/,
    suggestion: "'payment.completed.v1'",
  },
];

describe('event types', () => {
  for (const bad of [...literals, ...runs, ...computed, ...calls]) {
    test(`finds and mends ${bad.code}`, () => assertFound('event-type', bad));
  }

  for (const good of [
    "defineEvent('payment.completed.v1', s);",
    "const e = { type: 'payment.completed.v1' };",
    "const id = { type: 'button' }; if (e.type === 'click') {}",
    "const service = 'google.Storage.v1';",
    'const file = `${name}.${hash}.v1`;',
    'const file = `${transaction}.${reaction}.v1`;',
    "const category = 'coreTemplateManager.template.v1';",
    "import type { X } from 'Payment.Completed.v1'; export * from 'Payment.Completed.v1';",
    'const type = sql`Payment.Completed.v1`;',
    "// { type: 'Payment.Completed.v1' }\n/* `${agg}.${action}.v1` */",
    'buildEventType(agg, action, v); buildEventType(...parts);',
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});

import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const byHand = /put together by hand/;

const bad: readonly BadCode[] = [
  {
    code: "'banking.currency.v1-core'",
    reason: /needs -<tenant>-<id>/,
    suggestion: "buildStreamName('banking', 'currency', 1, 'core', id)",
  },
  {
    code: "'Banking.Currency.v1-core-USD'",
    reason: /camelCase/,
    suggestion: "'banking.currency.v1-core-USD'",
  },
  {
    code: "'core-template-manager.template.v01-core-x'",
    reason: /camelCase/,
    suggestion: "'coreTemplateManager.template.v1-core-x'",
  },
  { code: "'banking.currency.usd.v1-core-USD'", reason: /must be <bc>/ },
  {
    code: '`${bc}.${agg}.v1-${tenant}-${id}`',
    reason: byHand,
    suggestion: 'buildStreamName(bc, agg, 1, tenant, id)',
  },
  {
    code: '`${bc}.${agg}.v${version}-${tenant}-${id}`',
    reason: byHand,
    suggestion: 'buildStreamName(bc, agg, version, tenant, id)',
  },
  {
    code: '`banking.currency.v1-${user.tenant}-${String(code)}`',
    reason: byHand,
    suggestion: "buildStreamName('banking', 'currency', 1, user.tenant, String(code))",
  },
  {
    code: "'coreTemplateManager.template.v1-' + tenant + '-order-' + id",
    reason: byHand,
    suggestion: "buildStreamName('core-template-manager', 'template', 1, tenant, `order-${id}`)",
  },
  {
    code: '`banking.currency.v1-${(a, b)}-${id}`',
    reason: byHand,
    suggestion: "buildStreamName('banking', 'currency', 1, (a, b), id)",
  },
  { code: '`banking.currency.v1-${key}`', reason: byHand },
  { code: '`${category}-${tenant}-${id}`', reason: byHand },
  { code: '`${bc}.${agg}.v1`', reason: byHand, suggestion: 'buildCategory(bc, agg, 1)' },
  {
    code: "'$ce-core-template.item.v1'",
    reason: /category stream/,
    suggestion: "'$ce-coreTemplate.item.v1'",
  },
  { code: "'$ce-account'", reason: /category stream/ },
  {
    code: '`$ce-${bc}.payment.v${v}`',
    reason: byHand,
    suggestion: "categoryStream(bc, 'payment', v)",
  },
  {
    code: "'$et-PaymentCompleted'",
    reason: /event type/,
    suggestion: "'$et-payment.completed.v1'",
  },
  { code: "'$et-' + type", reason: byHand, suggestion: 'eventTypeStream(type)' },
  {
    code: '`$et-${agg}.completed.v1`',
    reason: byHand,
    suggestion: "eventTypeStream(buildEventType(agg, 'completed', 1))",
  },
  {
    code: '`notification.slack.request-${tenant}-${id}`',
    reason: byHand,
    suggestion: 'slackAddressing.stream(tenant, id)',
  },
  {
    code: "'notification.slack.request-core'",
    reason: /notification\.slack\.request-<tenant>-<id>/,
  },
  {
    code: '<A k="banking.currency.v1-core" />',
    at: '"banking.currency.v1-core"',
    reason: /needs/,
    suggestion: "{buildStreamName('banking', 'currency', 1, 'core', id)}",
  },
  {
    code: "{ 'banking.currency.v1-core': 1 }",
    at: "'banking.currency.v1-core'",
    reason: /needs/,
    suggestion: "[buildStreamName('banking', 'currency', 1, 'core', id)]",
  },
  { code: "x as 'banking.currency.v1-core'", at: "'banking.currency.v1-core'", reason: /needs/ },
  {
    code: "buildStreamName('Banking', agg, 1, tenant, id)",
    at: "'Banking'",
    reason: /bounded context/,
    suggestion: "'banking'",
  },
  {
    code: "buildStreamName(bc, agg, 1, 'demo-za', id)",
    at: "'demo-za'",
    reason: /not in the tenant directory/,
  },
  { code: "buildStreamName(bc, agg, 1, tenant, 'a:b')", at: "'a:b'", reason: /aggregate id/ },
];

describe('stream names', () => {
  for (const code of bad) {
    test(`finds and mends ${code.code}`, () => assertFound('stream-name', code));
  }

  test('reads through a constant of the file', () =>
    assertFound('stream-name', {
      code: "`${category}-${tenant}-${id}`); const category = 'banking.currency.v1'; void (0",
      at: '`${category}-${tenant}-${id}`',
      reason: byHand,
      suggestion: "buildStreamName('banking', 'currency', 1, tenant, id)",
    }));

  for (const good of [
    "read('banking.currency.v1-core-USD', 'paymenthub.payment.v1-core-017f8c4a-2b1c');",
    "read('notification.slack.request-core-r-1', '$ce-notification.slack.request');",
    "read('$ce-coreTemplateManager.template.v1', '$et-payment.completed.v1', '$all');",
    "if (stream.startsWith('$ce-') || stream.startsWith('notification.slack.request-')) {}",
    "download('report.final.v2-draft.pdf', `bundle.min.v3-${hash}-${x}.js`);",
    "buildStreamName(bc, agg, 1, 'demo-za', id, tenants);",
    'const a = `${b}.${c}.v1`; const d = `${e}-${f}-${g}`;',
    '// `${bc}.${agg}.v1-${tenant}-${id}`',
    'type Stream = `${string}.${string}.v1-${string}-${string}`;',
    'const r = String.raw`banking.currency.v1-core`;',
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});

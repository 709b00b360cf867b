import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Finding, LintOptions, LintRule } from './finding.ts';
import { lintSource } from './lint-source.ts';
import { isPastTense } from './past-tense.ts';

/** Code with one finding: the reason, the suggestion if there is one, and the reported part of the code. */
type InvalidCode = readonly [
  code: string,
  reason: RegExp,
  suggestion?: string | undefined,
  part?: string,
];

const byHand = /built by hand/;

function testRule(
  rule: LintRule,
  invalid: readonly InvalidCode[],
  valid: readonly string[],
  options: LintOptions = {},
): void {
  describe(rule, () => {
    for (const [code, reason, suggestion, part = code] of invalid) {
      test(`reports ${code}`, async () => {
        const source = `// first line\nuse(0, ${code});\n`;
        const findings = await lintSource('case.tsx', source, options);
        assert.equal(findings.length, 1, JSON.stringify(findings, null, 2));
        const [finding] = findings as [Finding];
        assert.equal(finding.rule, rule);
        assert.match(finding.reason, reason);
        assert.equal(finding.suggestion, suggestion);
        assert.equal(source.slice(finding.start, finding.end), part);
        assert.deepEqual([finding.line, finding.column], [2, finding.start - source.indexOf('\n')]);
        if (suggestion === undefined) return;
        const fixed = source.slice(0, finding.start) + suggestion + source.slice(finding.end);
        assert.deepEqual(await lintSource('case.tsx', fixed, options), [], fixed);
      });
    }
    for (const code of valid) {
      test(`accepts ${code}`, async () => {
        assert.deepEqual(await lintSource('case.tsx', code, options), []);
      });
    }
  });
}

const eventType = /must be <agg>\.<action>\.v<version>/;
const failed = "'Payment.Failed.v1'";
const fixedFailed = "'payment.failed.v1'";

testRule(
  'event-type',
  [
    ...[
      ["'Payment.Completed.v1'", "'payment.completed.v1'"],
      ['"payment_request.created.v1"', "'payment-request.created.v1'"],
      ["'payment.completed.v0'", "'payment.completed.v1'"],
      ["'PaymentCompleted'"],
      ["'payment.completed'"],
    ].map(([literal = '', suggestion]): InvalidCode => [
      `defineEvent(${literal}, s)`,
      eventType,
      suggestion,
      literal,
    ]),
    ...[
      `{ type: ${failed} }`,
      `event.type === ${failed}`,
      `${failed} !== event?.eventType`,
      `() => { switch (e.type) { case ${failed}: } }`,
      `bus.on(${failed}, handle)`,
      `{ paymentEvents: { failed: ${failed} } }`,
      `{ handledEvents: { ${failed}: handle } }`,
      `{ events: new Set([${failed}]) }`,
      `x as { type: ${failed} }`,
    ].map((code): InvalidCode => [code, eventType, fixedFailed, failed]),
    ['<Row type="Payment.Failed.v1" />', eventType, fixedFailed, '"Payment.Failed.v1"'],
    [
      '{ eventType: `PAYMENT.COMPLETED.V2` as const }',
      eventType,
      "'payment.completed.v2'",
      '`PAYMENT.COMPLETED.V2`',
    ],
    [
      "{ type: 'notification.slack.sent.v1' }",
      eventType,
      undefined,
      "'notification.slack.sent.v1'",
    ],

    ['`${agg}.${action}.v${v}`', byHand, 'buildEventType(agg, action, v)'],
    ["agg + '.' + this.action + '.v' + v", byHand, 'buildEventType(agg, this.action, v)'],
    ['`Payment.${action}.v1`', byHand, "buildEventType('payment', action, 1)"],
    [
      '`payment.${event.name}-again.v2`',
      byHand,
      "buildEventType('payment', `${event.name}-again`, 2)",
    ],
    [
      '{ type: `payment.${status}.v1` }',
      byHand,
      "buildEventType('payment', status, 1)",
      '`payment.${status}.v1`',
    ],
    [
      'defineEvent(`${name}.created.v1`, s)',
      byHand,
      "buildEventType(name, 'created', 1)",
      '`${name}.created.v1`',
    ],
  ],
  [
    "defineEvent('payment.completed.v1', s); const e = { type: 'payment.completed.v1' };",
    "const id = { type: 'button' }; if (e.type === 'click') {}",
    "const service = 'google.Storage.v1'; const category = 'coreTemplateManager.template.v1';",
    'const file = `${name}.${hash}.v1`; const other = `${transaction}.${reaction}.v1`;',
    "import type { X } from 'Payment.Completed.v1'; export * from 'Payment.Completed.v1';",
    'const type = sql`Payment.Completed.v1`;',
    "// { type: 'Payment.Completed.v1' }\n/* `${agg}.${action}.v1` */",
    'buildEventType(agg, action, v); buildEventType(...parts);',
  ],
);

const notPast = /is not in the past tense/;

testRule(
  'event-tense',
  [
    ["defineEvent('payment.complete.v1', s)", notPast, undefined, "'payment.complete.v1'"],
    ["e.type === 'message.send.v1'", notPast, undefined, "'message.send.v1'"],
    ["buildEventType('payment', 'processing', 1)", notPast, undefined, "'processing'"],
    ["'$et-payment.succeed.v1'", notPast],
    [
      "projection({ on: { 'payment.complete.v1': f } })",
      notPast,
      undefined,
      "'payment.complete.v1'",
    ],
    ["({ evolve: { 'payment.complete.v1': f } })", notPast, undefined, "'payment.complete.v1'"],
    ["defineEvent('video.embed.v1', s)", notPast, undefined, "'video.embed.v1'"],
    ["defineEvent('2fa.enable.v1', s)", notPast, undefined, "'2fa.enable.v1'"],
  ],
  [
    "projection({ on: { 'payment.completed.v1': f } }); labels({ 'banking.currency.v1': 1 });",
    "const category = 'banking.currency.v1'; subscribe('banking.currency.v1');",
  ],
);

test('the past tense is an ending in -ed or an irregular participle, in the first or last word', () => {
  const past = 'created sent paid tags-parsed failed-permanently withdrawn overridden agreed reset';
  for (const action of past.split(' ')) assert.equal(isPastTense(action), true, action);
  const other = 'create complete sending overdue need embed succeed completion status-change';
  for (const action of other.split(' ')) assert.equal(isPastTense(action), false, action);
});

testRule(
  'stream-name',
  [
    ["'banking.currency.v1-core'", /needs -<tenant>-<id>/],
    ["'Banking.Currency.v1-core-USD'", /camelCase/, "'banking.currency.v1-core-USD'"],
    [
      "'core-template-manager.template.v01-core-x'",
      /camelCase/,
      "'coreTemplateManager.template.v1-core-x'",
    ],
    ["'banking.currency.usd.v1-core-USD'", /must be <bc>/],
    ["'$ce-core-template.item.v1'", /must be \$ce-/, "'$ce-coreTemplate.item.v1'"],
    ["'$ce-account'", /category stream/],
    ["'$et-Payment.Completed.v1'", /event type/, "'$et-payment.completed.v1'"],
    ["'notification.slack.request-core'", /notification\.slack\.request-<tenant>-<id>/],
    [
      '<A k="Banking.currency.v1-core-x" />',
      /camelCase/,
      "'banking.currency.v1-core-x'",
      '"Banking.currency.v1-core-x"',
    ],

    [
      '`${bc}.${agg}.v${version}-${tenant}-${id}`',
      byHand,
      'buildStreamName(bc, agg, version, tenant, id)',
    ],
    [
      '`banking.currency.v1-${user.tenant}-${String(code)}`',
      byHand,
      "buildStreamName('banking', 'currency', 1, user.tenant, String(code))",
    ],
    [
      "'coreTemplateManager.template.v1-' + tenant + '-order-' + id",
      byHand,
      "buildStreamName('core-template-manager', 'template', 1, tenant, `order-${id}`)",
    ],
    ['`banking.currency.v1-${key}`', byHand],
    ['`${category}-${tenant}-${id}`', byHand],
    ['`${bc}.${agg}.v1`', byHand, 'buildCategory(bc, agg, 1)'],
    ['`$ce-${bc}.payment.v${v}`', byHand, "categoryStream(bc, 'payment', v)"],
    ["'$et-' + type", byHand, 'eventTypeStream(type)'],
    ['`$et-${agg}.completed.v1`', byHand, "eventTypeStream(buildEventType(agg, 'completed', 1))"],
    ['`notification.slack.request-${tenant}-${id}`', byHand, 'slackAddressing.stream(tenant, id)'],
  ],
  [
    "read('banking.currency.v1-core-USD', 'paymenthub.payment.v1-core-017f8c4a-2b1c');",
    "read('notification.slack.request-core-r-1', '$ce-notification.slack.request');",
    "read('$ce-coreTemplateManager.template.v1', '$et-payment.completed.v1', '$all');",
    "if (stream.startsWith('$ce-') || stream.startsWith('notification.slack.request-')) {}",
    "download('report.final.v2-draft.pdf', `bundle.min.v3-${hash}-${x}.js`);",
    'const a = `${b}.${c}.v1`; const d = `${e}-${f}-${g}`;',
    'type Stream = `${string}.${string}.v1-${string}-${string}`;',
    'const r = String.raw`banking.currency.v1-core`;',
  ],
);

testRule(
  'subscription-name',
  [
    ["'sub:Core:CurrencyProjection:v1'", /kebab-case/, "'sub:core:currency-projection:v1'"],
    ["'sub:core:currency:v0'", /kebab-case/, "'sub:core:currency:v1'"],
    [
      '`sub:${service}:${name}:v${version}`',
      byHand,
      'buildSubscriptionName(service, name, version)',
    ],
    [
      "'sub:' + service + ':projection:v1'",
      byHand,
      "buildSubscriptionName(service, 'projection', 1)",
    ],
  ],
  [
    "subscribe('sub:core-lookup:currency-projection:v1');",
    "emit('sub:user:created'); join(`sub:${user}:${room}`); log('sub: nothing'); keys('sub:*:*:v1');",
  ],
);

const inBraces = /must be in braces/;
const owner = "tenant, 'banking', 'currency', 1";

testRule(
  'redis-key',
  [
    ["'app:core:banking:currency:v1:USD'", /\{core\}/, "'app:{core}:banking:currency:v1:USD'"],
    [
      "'app:{core}:{banking}:{currency}:v1:USD'",
      /is none of app:/,
      "'app:{core}:banking:currency:v1:USD'",
    ],
    [
      "'app:{core}:Banking:currency:v1:USD'",
      /is none of app:/,
      "'app:{core}:banking:currency:v1:USD'",
    ],
    ["'app:{core}:banking:currency:USD'", /is none of app:/],
    ["'app:{core}:crm:contact:v1:27821234567'", /phone number/],
    [
      "'app:core:banking:currency:v1:list:{abc123}'",
      inBraces,
      "'app:{core}:banking:currency:v1:list:{abc123}'",
    ],
    [
      "'mq:core:paymenthub:payment:v1:process'",
      inBraces,
      "'mq:{core}:paymenthub:payment:v1:process'",
    ],
    [
      "'job:core:paymenthub:payment:process:p-1'",
      inBraces,
      "'job:{core}:paymenthub:payment:process:p-1'",
    ],
    [
      "'checkpoint:esdb:{sub:payments:projection:v1}'",
      /checkpoint/,
      "'checkpoint:esdb:sub:payments:projection:v1'",
    ],
    ["'checkpoint:esdb:payments'", /is none of app:/],
    ["'checkpoint:workflow:refund:core'", /checkpoint/, "'checkpoint:workflow:refund:{core}'"],
    [
      "'notification.slack:v1:core:message-request:r-1'",
      inBraces,
      "'notification.slack:v1:{core}:message-request:r-1'",
    ],
    [
      "'notification.slack:v1:{core}:message-request:{r-1}:dispatched'",
      /must be notification\.slack/,
      "'notification.slack:v1:{core}:message-request:r-1:dispatched'",
    ],
    ["scan('app:core:*:v1:*')", inBraces, undefined, "'app:core:*:v1:*'"],

    ...[
      ['${id}', `snapshot(${owner}, id)`],
      ['h:${id}', `hash(${owner}, id)`],
      ['index:by-${field}', `index(${owner}, field)`],
      ['set:open', `set(${owner}, 'open')`],
      ['zset:by-price', `zset(${owner}, 'price')`],
      ['list:{${hash}}', `listOf(${owner}, hash)`],
    ].map(([tail, call]): InvalidCode => [
      `\`app:{\${tenant}}:banking:currency:v1:${tail}\``,
      byHand,
      `redisKeys.${call}`,
    ]),
    ['`app:${tenant}:banking:currency:v1:${id}`', inBraces, `redisKeys.snapshot(${owner}, id)`],
    [
      "'app:{' + tenant + '}:banking:currency:v1:' + id",
      byHand,
      `redisKeys.snapshot(${owner}, id)`,
    ],
    [
      '`mq:{${tenant}}:paymenthub:payment:v${v}:process`',
      byHand,
      "redisKeys.queue(tenant, 'paymenthub', 'payment', v, 'process')",
    ],
    [
      '`mq:{${tenant}}:paymenthub:payment:v1`',
      byHand,
      "redisKeys.queueAddress(tenant, 'paymenthub', 'payment', 1, work).prefix",
    ],
    [
      '`job:{${tenant}}:paymenthub:payment:process:${id}`',
      byHand,
      "redisKeys.jobId(tenant, 'paymenthub', 'payment', 'process', id)",
    ],
    ['`checkpoint:esdb:${name}`', byHand, 'redisKeys.checkpoint(name)'],
    [
      '`checkpoint:esdb:sub:${service}:projection:v1`',
      byHand,
      "redisKeys.checkpoint(buildSubscriptionName(service, 'projection', 1))",
    ],
    [
      '`checkpoint:workflow:refund:{${tenant}}`',
      byHand,
      "redisKeys.workflowCheckpoint('refund', tenant)",
    ],
    [
      '`notification.slack:v1:{${tenant}}:message-request:${id}`',
      byHand,
      'slackAddressing.snapshot(tenant, id)',
    ],
    [
      '`notification.slack:v1:{${tenant}}:message-request:${id}:send-lock`',
      byHand,
      'slackAddressing.sendLock(tenant, id)',
    ],
    [
      '`notification.slack:v1:{${tenant}}:idx:message-request:updated`',
      byHand,
      'slackAddressing.indexUpdated(tenant)',
    ],
    [
      '`notification.slack:v1:{${tenant}}:idx:message-request:by-status:${status}`',
      byHand,
      'slackAddressing.indexByStatus(tenant, status)',
    ],
    ['`app:{${tenant}}:${rest}`', byHand],
  ],
  [
    "get('app:{core}:banking:currency:v1:USD'); get('app:{core}:banking:currency:v1:list:{ab12}');",
    "get('mq:{core}:paymenthub:payment:v1:process'); get('job:{core}:a:b:c:d');",
    "new Queue('process', { prefix: 'mq:{core}:paymenthub:payment:v1' });",
    "get('checkpoint:esdb:sub:payments:projection:v1'); get('checkpoint:workflow:refund:{core}');",
    "get('notification.slack:v1:{core}:idx:message-request:by-status:queued');",
    "debug('app:http:error'); emit('app:start'); emit('job:done'); emit(`job:${id}:progress`);",
    "log('app: started'); log(`job:${id} of app:{core}:x:y is done`);",
    "scan('app:{core}:banking:*'); scan(`app:{${tenant}}:banking:currency:v1:*`);",
    "if (key.startsWith('app:{core}:') || key.startsWith(`app:{${tenant}}:`)) {}",
    "const shape = 'app:{<tenant>}:<bc>:<agg>:v<version>:<id>';",
    'redisKeys.snapshot(tenant, bc, agg, v, id); redisKeys.list(tenant, bc, agg, 1, filters);',
  ],
);

const rejected = /BullMQ rejects ':'/;
const queueKey = "'mq:core:paymenthub:payment:v1:process'";

testRule(
  'queue-name',
  [
    [
      `new Queue(${queueKey})`,
      /prefix/,
      "redisKeys.queueAddress('core', 'paymenthub', 'payment', 1, 'process').name",
      queueKey,
    ],
    [
      'new Worker(`mq:{${tenant}}:a:b:v${v}:${work}`, run)',
      /prefix/,
      "redisKeys.queueAddress(tenant, 'a', 'b', v, work).name",
      '`mq:{${tenant}}:a:b:v${v}:${work}`',
    ],
    ["new QueueEvents('emails:send')", rejected, undefined, "'emails:send'"],
    ['new Queue(`emails:${tenant}`)', rejected, undefined, '`emails:${tenant}`'],
    ["flow.add({ name: 'x', queueName: 'emails:send' })", rejected, undefined, "'emails:send'"],
    [
      "queue.add('x', {}, { jobId: 'job:{core}:a:b:c:d' })",
      /encodeJobId/,
      "encodeJobId(redisKeys.jobId('core', 'a', 'b', 'c', 'd'))",
      "'job:{core}:a:b:c:d'",
    ],
    [
      'queue.add(n, d, { jobId: `job:${tenant}:a:b:c:${id}` })',
      /encodeJobId/,
      "encodeJobId(redisKeys.jobId(tenant, 'a', 'b', 'c', id))",
      '`job:${tenant}:a:b:c:${id}`',
    ],
    [
      "queue.add(n, d, { jobId: outboxId + ':' + attempt })",
      /encodeJobId/,
      'encodeJobId(`${outboxId}:${attempt}`)',
      "outboxId + ':' + attempt",
    ],
  ],
  [
    "import { Worker } from 'node:worker_threads'; new Worker('c:/workers/a.js');",
    "new Worker('https://example.com/worker.js'); new Worker('data:text/javascript,1');",
    "const jobId = 'job:{core}:a:b:c:d'; queue.add('x', {}, { jobId: encodeJobId(jobId) });",
    "queue.add('send:mail', {}, { jobId: `${outboxId}-${attempt}` });",
  ],
);

testRule(
  'subject',
  [
    ["'gbe.tasks.email-send.pending'", /expected queue, progress, terminal/],
    ["'gbe.tasks.emailSend.queue'", /task type/],
    ["'gbe.events.sytem.health'", /unknown entity/],
    ["'gbe.events.>.health'", />/],
    ["'gbe.notify.customer*.alert'", /\*/],
    ["'gbe:tasks:email-send:pending'", /unknown last token/],
    ['`gbe.tasks.${type}.queue`', byHand, 'subjects.tasks.type(type).queue'],
    ['`gbe.tasks.${type}.${role}`', byHand, 'subjects.tasks.type(type)[role]'],
    ["'gbe.notify.customer.' + user.id + '.>'", byHand, 'subjects.notify.customer(user.id).all'],
    ['`gbe.notify.topic.${topic}`', byHand, 'subjects.notify.topic(topic)'],
    ['`gbe.notify.broadcast.${what}`', byHand, 'subjects.notify.broadcast[what]'],
    ['`gbe.events.audit.${what}`', byHand, 'subjects.events.audit[what]'],
    ['`gbe.tasks._control.${what}`', byHand, 'subjects.tasks.control[what]'],
    ['`gbe.notify.customer.*.${what}`', byHand],
    ['`gbe.tasks.${a}.${b}.${c}`', byHand],
    ['`gbe:tasks:${type}:queue`', byHand, 'subjectToStreamKey(subjects.tasks.type(type).queue)'],
  ],
  [
    "on('gbe.notify.customer.cust_abc123.alert', 'gbe.notify.topic.server-alerts');",
    "on('gbe.notify.customer.*.alert', 'gbe.events.>', 'gbe.tasks.email-send.>', 'gbe.*.*.error');",
    "on('gbe.tasks._control.sweep', 'gbe:tasks:email-send:queue', 'gbe:tasks:*');",
    "if (subject.startsWith('gbe.tasks.') || subject.startsWith('gbe.events')) {}",
    "const other = 'gbe.settings.theme'; const text = 'gbe.tasks.are many';",
    'subjects.tasks.type(type).queue; use(`prod.gbe.tasks.${type}.queue`, `gbe.${domain}.x`);',
  ],
);

testRule(
  'subject',
  [
    [
      '`prod.gbe.tasks.${type}.queue`',
      byHand,
      "createSubjects({ root: 'prod.gbe' }).tasks.type(type).queue",
    ],
    ["'prod:gbe:tasks:email-send:pending'", /unknown last token/],
  ],
  ["on('prod.gbe.tasks.email-send.queue', 'prod:gbe:tasks:email-send:queue');"],
  { roots: ['prod.gbe'] },
);

import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const byHand = /put together by hand/;
const hashTag = /must stand in braces/;
const stray = /braces belong around the tenant only/;
const key = (tail: string): string => `\`app:{\${tenant}}:banking:currency:v1:${tail}\``;
const owner = "tenant, 'banking', 'currency', 1";

const bad: readonly BadCode[] = [
  {
    code: "'app:core:banking:currency:v1:USD'",
    reason: /\{core\}/,
    suggestion: "'app:{core}:banking:currency:v1:USD'",
  },
  {
    code: "'app:{core}:{banking}:{currency}:v1:USD'",
    reason: stray,
    suggestion: "'app:{core}:banking:currency:v1:USD'",
  },
  {
    code: "'app:{core}:banking:currency:v1}:set:all'",
    reason: stray,
    suggestion: "'app:{core}:banking:currency:v1:set:all'",
  },
  {
    code: "'app:{core}:Banking:currency:v1:USD'",
    reason: /bounded context 'Banking'/,
    suggestion: "'app:{core}:banking:currency:v1:USD'",
  },
  { code: "'app:{core}:banking:currency:USD'", reason: /the key must be app:/ },
  { code: "'app:{core}:crm:contact:v1:27821234567'", reason: /phone number/ },
  {
    code: "'app:core:banking:currency:v1:list:{abc123}'",
    reason: /key/,
    suggestion: "'app:{core}:banking:currency:v1:list:{abc123}'",
  },
  {
    code: "'mq:core:paymenthub:payment:v1:process'",
    reason: hashTag,
    suggestion: "'mq:{core}:paymenthub:payment:v1:process'",
  },
  {
    code: "'job:core:paymenthub:payment:process:p-1'",
    reason: hashTag,
    suggestion: "'job:{core}:paymenthub:payment:process:p-1'",
  },
  {
    code: "'checkpoint:esdb:{sub:payments:projection:v1}'",
    reason: /checkpoint/,
    suggestion: "'checkpoint:esdb:sub:payments:projection:v1'",
  },
  { code: "'checkpoint:esdb:payments'", reason: /checkpoint:esdb:<subscription>/ },
  {
    code: "'checkpoint:workflow:refund:core'",
    reason: /checkpoint/,
    suggestion: "'checkpoint:workflow:refund:{core}'",
  },
  {
    code: "'notification.slack:v1:core:message-request:r-1'",
    reason: hashTag,
    suggestion: "'notification.slack:v1:{core}:message-request:r-1'",
  },
  {
    code: "'notification.slack:v1:{core}:message-request:{r-1}:dispatched'",
    reason: stray,
    suggestion: "'notification.slack:v1:{core}:message-request:r-1:dispatched'",
  },
  {
    code: "scan('app:core:*:v1:*')",
    at: "'app:core:*:v1:*'",
    reason: hashTag,
    suggestion: "'app:{core}:*:v1:*'",
  },

  { code: key('${id}'), reason: byHand, suggestion: `redisKeys.snapshot(${owner}, id)` },
  { code: key('h:${id}'), reason: byHand, suggestion: `redisKeys.hash(${owner}, id)` },
  { code: key('index:by-code'), reason: byHand, suggestion: `redisKeys.indexByCode(${owner})` },
  {
    code: key('index:by-${field}'),
    reason: byHand,
    suggestion: `redisKeys.index(${owner}, field)`,
  },
  { code: key('set:all'), reason: byHand, suggestion: `redisKeys.setAll(${owner})` },
  { code: key('set:enabled'), reason: byHand, suggestion: `redisKeys.setEnabled(${owner})` },
  { code: key('set:open'), reason: byHand, suggestion: `redisKeys.set(${owner}, 'open')` },
  { code: key('zset:by-updated'), reason: byHand, suggestion: `redisKeys.zsetByUpdated(${owner})` },
  { code: key('zset:by-price'), reason: byHand, suggestion: `redisKeys.zset(${owner}, 'price')` },
  {
    code: key('list:{${filtersHash({ a: 1 })}}'),
    reason: byHand,
    suggestion: `redisKeys.list(${owner}, { a: 1 })`,
  },
  { code: key('list:{${hash}}'), reason: byHand, suggestion: `redisKeys.list(${owner}, filters)` },
  {
    code: '`app:${tenant}:banking:currency:v1:${id}`',
    reason: hashTag,
    suggestion: `redisKeys.snapshot(${owner}, id)`,
  },
  {
    code: "'app:{' + tenant + '}:banking:currency:v1:' + id",
    reason: byHand,
    suggestion: `redisKeys.snapshot(${owner}, id)`,
  },
  {
    code: "['app', `{${tenant}}`, bc, agg, 'v1', id].join(':')",
    reason: byHand,
    suggestion: 'redisKeys.snapshot(tenant, bc, agg, 1, id)',
  },
  {
    code: '`mq:{${tenant}}:paymenthub:payment:v${v}:process`',
    reason: byHand,
    suggestion: "redisKeys.queue(tenant, 'paymenthub', 'payment', v, 'process')",
  },
  {
    code: '`mq:{${tenant}}:paymenthub:payment:v1`',
    reason: byHand,
    suggestion: "redisKeys.queueAddress(tenant, 'paymenthub', 'payment', 1, work).prefix",
  },
  {
    code: '`job:{${tenant}}:paymenthub:payment:process:${id}`',
    reason: byHand,
    suggestion: "redisKeys.jobId(tenant, 'paymenthub', 'payment', 'process', id)",
  },
  { code: '`checkpoint:esdb:${name}`', reason: byHand, suggestion: 'redisKeys.checkpoint(name)' },
  {
    code: '`checkpoint:esdb:sub:${service}:projection:v1`',
    reason: byHand,
    suggestion: "redisKeys.checkpoint(buildSubscriptionName(service, 'projection', 1))",
  },
  {
    code: '`checkpoint:workflow:refund:{${tenant}}`',
    reason: byHand,
    suggestion: "redisKeys.workflowCheckpoint('refund', tenant)",
  },
  {
    code: '`notification.slack:v1:{${tenant}}:message-request:${id}`',
    reason: byHand,
    suggestion: 'slackAddressing.snapshot(tenant, id)',
  },
  {
    code: '`notification.slack:v1:{${tenant}}:message-request:${id}:send-lock`',
    reason: byHand,
    suggestion: 'slackAddressing.sendLock(tenant, id)',
  },
  {
    code: '`notification.slack:v1:{${tenant}}:idx:message-request:updated`',
    reason: byHand,
    suggestion: 'slackAddressing.indexUpdated(tenant)',
  },
  {
    code: '`notification.slack:v1:{${tenant}}:idx:message-request:by-status:${status}`',
    reason: byHand,
    suggestion: 'slackAddressing.indexByStatus(tenant, status)',
  },
  { code: '`app:{${tenant}}:${rest}`', reason: byHand },

  {
    code: "redisKeys.snapshot('Core', bc, agg, 1, id)",
    at: "'Core'",
    reason: /tenant 'Core'/,
    suggestion: "'core'",
  },
  {
    code: "redisKeys.snapshot(tenant, bc, agg, 1, 'ada@example.com')",
    at: "'ada@example.com'",
    reason: /e-mail/,
  },
  { code: "redisKeys.checkpoint('payments')", at: "'payments'", reason: /subscription 'payments'/ },
  {
    code: "slackAddressing.indexByStatus(tenant, 'In Progress')",
    at: "'In Progress'",
    reason: /status/,
    suggestion: "'in-progress'",
  },
];

describe('Redis keys', () => {
  for (const code of bad) {
    test(`finds and mends ${code.code}`, () => assertFound('redis-key', code));
  }

  for (const good of [
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
    '// app:core:banking:currency:v1:USD',
    'redisKeys.snapshot(tenant, bc, agg, v, id); redisKeys.list(tenant, bc, agg, 1, filters);',
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});

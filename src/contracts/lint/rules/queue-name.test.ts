import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const refuses = /BullMQ refuses ':'/;
const address = "redisKeys.queueAddress('core', 'paymenthub', 'payment', 1, 'process')";

const bad: readonly BadCode[] = [
  {
    code: "new Queue('mq:{core}:paymenthub:payment:v1:process')",
    at: "'mq:{core}:paymenthub:payment:v1:process'",
    reason: /prefix/,
    suggestion: `${address}.name, { prefix: ${address}.prefix }`,
  },
  {
    code: "new Queue('mq:core:paymenthub:payment:v1:process', options)",
    at: "'mq:core:paymenthub:payment:v1:process'",
    reason: /prefix/,
    suggestion: `${address}.name`,
  },
  {
    code: 'new Worker(`mq:{${tenant}}:a:b:v${v}:${work}`, run)',
    at: '`mq:{${tenant}}:a:b:v${v}:${work}`',
    reason: /prefix/,
    suggestion: "redisKeys.queueAddress(tenant, 'a', 'b', v, work).name",
  },
  {
    code: "new QueueEvents('emails:send')",
    at: "'emails:send'",
    reason: refuses,
    suggestion: "'emails-send'",
  },
  {
    code: 'new Queue(`emails:${tenant}`)',
    at: '`emails:${tenant}`',
    reason: refuses,
    suggestion: '`emails-${tenant}`',
  },
  {
    code: "flow.add({ name: 'x', queueName: 'emails:send' })",
    at: "'emails:send'",
    reason: refuses,
    suggestion: "'emails-send'",
  },
  {
    code: "queue.add('x', {}, { jobId: 'job:{core}:a:b:c:d' })",
    at: "'job:{core}:a:b:c:d'",
    reason: /encodeJobId/,
    suggestion: "encodeJobId(redisKeys.jobId('core', 'a', 'b', 'c', 'd'))",
  },
  {
    code: 'queue.add(n, d, { jobId: `job:${tenant}:a:b:c:${id}` })',
    at: '`job:${tenant}:a:b:c:${id}`',
    reason: /encodeJobId/,
    suggestion: "encodeJobId(redisKeys.jobId(tenant, 'a', 'b', 'c', id))",
  },
  {
    code: "queue.add(n, d, { jobId: outboxId + ':' + attempt })",
    at: "outboxId + ':' + attempt",
    reason: /encodeJobId/,
    suggestion: 'encodeJobId(`${outboxId}:${attempt}`)',
  },
];

describe('queue names and job ids', () => {
  for (const code of bad) {
    test(`finds and mends ${code.code}`, () => assertFound('queue-name', code));
  }

  test('follows the name that BullMQ was imported under', () =>
    assertFound('queue-name', {
      code: "new BullQueue('a:b')); import { Queue as BullQueue } from 'bullmq'; void (0",
      at: "'a:b'",
      reason: refuses,
      suggestion: "'a-b'",
    }));

  for (const good of [
    "new Queue('process', { prefix: redisKeys.queueAddress('core', 'a', 'b', 1, 'process').prefix });",
    "import { Worker } from 'node:worker_threads'; new Worker('c:/workers/a.js');",
    "new Worker('https://example.com/worker.js'); new Worker('data:text/javascript,1');",
    "const jobId = 'job:{core}:a:b:c:d'; queue.add('x', {}, { jobId: encodeJobId(jobId) });",
    "queue.add('send:mail', {}, { jobId: `${outboxId}-${attempt}` });",
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});

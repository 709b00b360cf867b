import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobIdOf, readSendJob, roundOf, sendJob } from './dispatcher.ts';

const key = { tenant: 'core', id: 'r-1.7', round: 2, generation: 3 };

test('a job contains only tenant, id and thread', () => {
  const content = { workspaceCode: 'acme', data: { secret: 'x' }, threadTs: '17.1' };
  const job = sendJob(key, { content, dueAtMs: 5_000, priority: 4 }, 1_000);
  assert.deepEqual(job, {
    id: 'core.r-1.7.2.3',
    name: 'send-message-request',
    data: { messageRequestId: 'r-1.7', tenant: 'core', threadTs: '17.1' },
    removeOnComplete: 100,
    removeOnFail: 50,
    priority: 4,
    delayMs: 4_000,
  });
  assert.deepEqual(roundOf(jobIdOf(key)), { round: 2, generation: 3 });
});

test('the dispatcher uses only the ids of a job in the old format', () => {
  const plain = { messageRequestId: 'r-1', tenant: 'core' };
  assert.deepEqual(readSendJob(plain), { ...plain, wasEnriched: false });
  const old = { workspace: { token: 'xoxb-old' }, template: { text: 'x' }, channel: {} };
  for (const data of [
    { ...plain, ...old },
    { messageRequest: { id: 'r-1', tenant: 'core', status: 'sent' }, ...old },
    { tenant: 'core', request: { id: 'r-1' }, ...old },
  ]) {
    assert.deepEqual(readSendJob(data), { ...plain, wasEnriched: true });
  }
  for (const data of [
    undefined,
    null,
    'x',
    {},
    { tenant: 'core' },
    { messageRequestId: 7, tenant: 'core' },
  ]) {
    assert.equal(readSendJob(data), undefined);
  }
});

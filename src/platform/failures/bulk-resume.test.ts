import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { taskType } from '../../tasks/index.ts';
import { until as untilHolds } from '../../testing/support/server/api-rig.ts';
import { createPlatform } from '../create-platform.ts';
import { matchFailures } from './bulk-action.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-resume-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const later = new Date('2100-01-01T00:00:00.000Z');

test('a process without tasks continues a bulk action that an earlier process has left', async () => {
  const engines = { store: `sqlite:${join(folder, 'shop.db')}` };
  const request = { action: 'retry', filter: {} } as const;
  {
    // It has a task type and no workers, so the job stays queued.
    await using platform = await createPlatform({
      engines,
      roles: ['api'],
      taskTypes: [taskType('report-gen')],
    });
    await platform.start();
    const ledger = platform.engines.outbox ?? assert.fail('no outbox');
    await ledger.enqueueMany(
      ['e1', 'e2'].map((sourceEventId) => ({
        sourceStreamId: 'shop.order.v1-core-1',
        sourceEventId,
        integrationType: 'partner:x',
        eventType: 'order.paid.v1',
        payload: {},
      })),
    );
    const [failed, dead] = await ledger.claimDueBatch('seed', 2);
    await ledger.markFailed(failed ?? assert.fail(), 'HTTP 503', later);
    await ledger.deadLetter(dead ?? assert.fail(), 'HTTP 400');
    const until = new Date(platform.clock.now() + 60_000).toISOString();
    const order = { ...request, until };
    // Only a message that is tried again by itself can be retried now.
    assert.deepEqual(
      (await matchFailures(platform, order)).items.map(({ id }) => id),
      [failed?.id],
    );
    await platform.startBulk({ ...order, matched: 1, by: 'ada', reason: '' });
  }
  await using platform = await createPlatform({ engines, roles: ['api'] });
  await platform.start();
  const ledger = platform.engines.outbox ?? assert.fail('no outbox');
  await untilHolds(async () => {
    const [message] = await ledger.list({ status: 'FAILED' });
    return message !== undefined && message.dueAt < later && message.attempts === 1;
  });
  assert.equal((await ledger.counts()).DEAD, 1);
});

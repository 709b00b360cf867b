import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { idempotencyKeyOf } from '../../contracts/idempotency-key.ts';
import { failureCause } from '../../foundation/failure-cause.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { taskType } from '../../tasks/index.ts';
import { startChild } from '../../testing/child-process.ts';
import { until as untilHolds } from '../../testing/support/server/api-rig.ts';
import { createPlatform } from '../create-platform.ts';
import { bulkItems, matchFailures } from './bulk-action.ts';
import { groupFailures, readFailures } from './failures.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-bulk-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const where = 'partner:x';
const errors = ['HTTP 503: busy', 'connection refused', 'no such customer "ada"'];

/** Dead messages of three causes, in turns. */
async function addDead(ledger: OutboxLedger, count: number): Promise<void> {
  for (let first = 0; first < count; first += 1_000) {
    await ledger.enqueueMany(
      Array.from({ length: 1_000 }, (_, at) => ({
        sourceStreamId: 'shop.order.v1-core-1',
        sourceEventId: `e${first + at}`,
        integrationType: where,
        eventType: 'order.paid.v1',
        payload: {},
        tenantId: 'core',
        // On a busy machine, leases may expire often while messages wait.
        maxAttempts: 100,
      })),
    );
    const claims = await ledger.claimDueBatch('seed', 1_000);
    await ledger.settle(
      claims.map((claim) => {
        const error = errors[Number(claim.sourceEventId.slice(1)) % errors.length] ?? '';
        const cause = failureCause({ source: 'delivery', where, error });
        const times = { at: new Date(0).toISOString(), durationMs: 1 };
        return { kind: 'dead', claim, error, attempt: { ...times, outcome: 'dead', error, cause } };
      }),
    );
  }
}

test('replays each failure of a group once, also if the process is killed during the action', async () => {
  const url = `sqlite:${join(folder, 'shop.db')}`;
  const keysFile = join(folder, 'keys.txt');
  const script = new URL('../../testing/support/platform/bulk-main.ts', import.meta.url);
  await using platform = await createPlatform({
    engines: { store: url },
    roles: ['api'],
    taskTypes: [taskType('report-gen')],
  });
  await platform.start();
  const ledger = platform.engines.outbox ?? assert.fail('no outbox');
  await addDead(ledger, 5_000);
  const groups = groupFailures((await readFailures(platform, {})).items, platform.clock.now());
  assert.deepEqual(groups.map(({ title, count }) => `${count} ${title}`).toSorted(), [
    '1666 no such customer ‹text›',
    '1667 HTTP 503: busy',
    '1667 connection refused',
  ]);
  const { fingerprint } = groups.find(({ title }) => title === errors[1]) ?? assert.fail('missing');
  const request = {
    action: 'replay',
    filter: { fingerprint },
    until: new Date(platform.clock.now()).toISOString(),
  } as const;
  const chosen = (await matchFailures(platform, request)).items.map(({ id }) => id);
  assert.equal(chosen.length, 1_667);
  const order = { ...request, matched: chosen.length, by: 'ada', reason: '' };
  const { id } = await platform.startBulk(order);
  const tasks = await platform.tasks();
  const jobNow = async () => (await tasks.get(id)) ?? assert.fail('missing');
  {
    // Killed after the messages of the second page were changed, and before the result is stored.
    await using child = startChild(script, { input: { url, keysFile, killAfter: 2 } });
    assert.equal(await child.ended, 'SIGKILL');
  }
  const atKill = Map.groupBy(bulkItems(await jobNow()), ({ outcome }) => outcome);
  assert.deepEqual([atKill.get('done')?.length, atKill.get('waiting')?.length], [250, 250]);
  assert.notEqual((await jobNow()).state, 'completed');
  await using again = startChild(script, { input: { url, keysFile } });
  await untilHolds(async () => (await jobNow()).state === 'completed');
  await untilHolds(async () => (await ledger.counts()).DEAD === 5_000);
  await again.kill();

  const items = bulkItems(await jobNow());
  assert.deepEqual(items.map((each) => each.id).toSorted(), chosen.toSorted());
  const outcomes = Map.groupBy(items, ({ outcome }) => outcome);
  assert.deepEqual([outcomes.get('done')?.length, outcomes.get('unchanged')?.length], [1_417, 250]);
  const wanted = new Set(chosen);
  const sent = new Map<string, Set<string>>();
  for (const line of readFileSync(keysFile, 'utf8').trim().split('\n')) {
    const [message = '', key = ''] = line.split(' ');
    sent.set(message, (sent.get(message) ?? new Set()).add(key));
  }
  let seen = 0;
  for (let last: string | undefined; ;) {
    const page = await ledger.list({ status: 'DEAD' }, { limit: 1_000, after: last });
    for (const message of page) {
      seen += 1;
      const isChosen = wanted.has(message.id);
      const log = await ledger.attemptLog(message.id);
      assert.equal(log.length, isChosen ? 2 : 1);
      const keys = isChosen ? [idempotencyKeyOf(message)] : [];
      assert.deepEqual([...(sent.get(message.id) ?? [])], keys);
    }
    last = page.at(-1)?.id;
    if (last === undefined) break;
  }
  assert.equal(seen, 5_000);
});

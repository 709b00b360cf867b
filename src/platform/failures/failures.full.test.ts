import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureCause } from '../../foundation/failure-cause.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { createPlatform } from '../create-platform.ts';
import { failureLimits, groupFailures, readFailures } from './failures.ts';

const where = 'partner:x';
const count = 300;
const payload = { text: 'x'.repeat(200_000) };
/** One cause; the second line of the error differs between messages. */
const errorOf = (at: number): string => `HTTP 503: busy\n${String(at % 10).repeat(4_980)}`;

async function addDead(ledger: OutboxLedger): Promise<void> {
  await ledger.enqueueMany(
    Array.from({ length: count }, (_, at) => ({
      sourceStreamId: 'shop.order.v1-core-1',
      sourceEventId: `e${at}`,
      integrationType: where,
      eventType: 'order.paid.v1',
      payload,
      tenantId: 'core',
    })),
  );
  const claims = await ledger.claimDueBatch('seed', count);
  await ledger.settle(
    claims.map((claim) => {
      const error = errorOf(Number(claim.sourceEventId.slice(1)));
      const cause = failureCause({ source: 'delivery', where, error });
      const times = { at: new Date(0).toISOString(), durationMs: 1 };
      return { kind: 'dead', claim, error, attempt: { ...times, outcome: 'dead', error, cause } };
    }),
  );
}

test('parallel callers read large failures in small pages, one read at a time, and share it', async () => {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, roles: ['api'] });
  await platform.start();
  const ledger = platform.engines.outbox ?? assert.fail('no outbox');
  await addDead(ledger);
  let reading = 0;
  let found = 0;
  const outbox: OutboxLedger = {
    ...ledger,
    async list(filter, page) {
      reading += 1;
      assert.equal(reading, 1, 'two reads at once');
      const messages = await ledger.list(filter, page);
      reading -= 1;
      found += messages.length;
      assert.ok(messages.length * payload.text.length < 1_048_576, `${messages.length} messages`);
      return messages;
    },
  };
  const engines = new Proxy(platform.engines, {
    get: (target, name): unknown => (name === 'outbox' ? outbox : Reflect.get(target, name)),
  });
  const observed = { clock: platform.clock, tasks: () => platform.tasks(), engines };

  const first = readFailures(observed, {});
  await Promise.resolve();
  const reads = await Promise.all([
    first,
    ...Array.from({ length: 60 }, () => readFailures(observed, {})),
    readFailures(observed, { tenant: 'other' }),
  ]);
  assert.equal(found, 2 * count, 'one read for the first caller, and one for all later callers');
  assert.equal(reads.at(-1)?.items.length, 0);
  for (const { items, isComplete } of reads.slice(0, -1)) {
    assert.ok(isComplete);
    assert.equal(items.length, count);
    const chars = items.reduce((sum, { error }) => sum + error.length, 0);
    assert.ok(chars <= failureLimits.textCharsMax + 20 * count, `${chars} characters`);
    // The latest errors are whole.
    assert.deepEqual(new Set(items.slice(-100).map(({ error }) => error.length)), new Set([4_995]));
    const [group, ...more] = groupFailures(items, platform.clock.now());
    assert.deepEqual([group?.title, group?.count, more], ['HTTP 503: busy', count, []]);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextTurn } from '../../foundation/async/next-turn.ts';
import { failureCause } from '../../foundation/failure-cause.ts';
import { override } from '../../foundation/override.ts';
import { messagePages } from '../../outbox/message-pages.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { Terminal } from '../../subscriptions/index.ts';
import { eventually, rejectsWith } from '../../testing/assertions.ts';
import { createPlatform, type Platform } from '../create-platform.ts';
import type { FailurePlatform } from './failure-sources.ts';
import { failureLimits, groupFailures, readFailures } from './failures.ts';

const where = 'partner:x';
const count = 300;
const payload = { text: 'x'.repeat(200_000) };
/** One cause; the second line of the error differs between messages. */
const errorOf = (at: number): string => `HTTP 503: busy\n${String(at % 10).repeat(4_980)}`;

async function addDead(
  ledger: OutboxLedger,
  content: Readonly<Record<string, unknown>>,
): Promise<void> {
  await ledger.enqueueMany(
    Array.from({ length: count }, (_, at) => ({
      sourceStreamId: 'shop.order.v1-core-1',
      sourceEventId: `e${at}`,
      integrationType: where,
      eventType: 'order.paid.v1',
      payload: content,
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

function withOutbox(platform: Platform, outbox: OutboxLedger): FailurePlatform {
  const engines = new Proxy(platform.engines, {
    get: (target, name): unknown => (name === 'outbox' ? outbox : Reflect.get(target, name)),
  });
  return { clock: platform.clock, tasks: () => platform.tasks(), engines };
}

test('parallel callers read large failures in small pages, one read at a time, and share it', async () => {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, roles: ['api'] });
  await platform.start();
  const ledger = platform.engines.outbox ?? assert.fail('no outbox');
  await addDead(ledger, payload);
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
      assert.ok(messages.length * payload.text.length < 5_000_000, `${messages.length} messages`);
      return messages;
    },
  };
  const observed = withOutbox(platform, outbox);

  const first = readFailures(observed, {});
  await nextTurn();
  const second = readFailures(observed, {});
  await nextTurn();
  const reads = await Promise.all([
    first,
    second,
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

test('large dead letters of the bus are read with few reads of the engine', async () => {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, roles: ['api'] });
  await platform.start();
  const bus = await platform.engines.bus();
  const order = { group: 'mails', subject: 'shop.mails.send' };
  await using consumer = await bus.consume(order, () => Promise.reject(new Terminal('no')));
  const text = 'x'.repeat(900_000);
  for (let at = 0; at < 12; at += 1)
    await bus.publish({ subject: order.subject, payload: { text } });
  await eventually('the messages are dead', async () => {
    return (await bus.deadLetters(order.group)).length === 12;
  });
  let pages = 0;
  const counting = override(bus, {
    deadLetters(group, page) {
      pages += 1;
      return bus.deadLetters(group, page);
    },
  });
  const engines = override(platform.engines, { bus: async () => counting });
  const read = { clock: platform.clock, tasks: () => platform.tasks(), engines };
  const { items } = await readFailures(read, { source: 'bus' });
  assert.deepEqual([items.length, pages], [12, 3], 'two pages of at most 8 MiB, and the end');
  await consumer.stop();
});

test('a read stops when its last caller has left, and a later caller gets a whole one', async () => {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, roles: ['api'] });
  await platform.start();
  const ledger = platform.engines.outbox ?? assert.fail('no outbox');
  await addDead(ledger, {});
  const pages = await Array.fromAsync(messagePages(ledger, {}));
  let pagesRead = 0;
  let onPage = (): void => undefined;
  const observed = withOutbox(platform, {
    ...ledger,
    list(filter, page) {
      pagesRead += 1;
      onPage();
      return ledger.list(filter, page);
    },
  });
  const read = (signal?: AbortSignal) => readFailures(observed, { source: 'delivery' }, signal);
  const [leaving, waiting] = [new AbortController(), new AbortController()];
  onPage = () => {
    if (pagesRead === 2) leaving.abort();
  };

  const running = read(leaving.signal);
  await Promise.resolve();
  // These two share the next read, and one of them leaves before it starts.
  const [left, stayed] = [read(waiting.signal), read()];
  waiting.abort();
  await rejectsWith(() => left, 'ABORTED');
  await rejectsWith(() => running, 'ABORTED');
  assert.equal((await stayed).items.length, count);
  // The last read of each status finds no more.
  const whole = pages.length + 2;
  assert.equal(pagesRead, 2 + whole);

  const [first, alone] = [read(), new AbortController()];
  await Promise.resolve();
  const second = read(alone.signal);
  alone.abort();
  await rejectsWith(() => second, 'ABORTED');
  const third = read();
  for (const { items } of await Promise.all([first, third])) assert.equal(items.length, count);
  assert.equal(pagesRead, 2 + 3 * whole, 'nothing is read for a caller that has left');
});

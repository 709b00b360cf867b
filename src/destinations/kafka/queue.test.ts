import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createKafkaQueue, type KafkaQueueOptions } from './queue.ts';
import type { KafkaRecord } from './record.ts';

const record = (key: string, bytes = 10): KafkaRecord => ({
  topic: 't',
  key,
  value: '',
  headers: {},
  bytes,
});

/** A batch stays in flight until the test completes it. */
function open(options: Partial<KafkaQueueOptions> = {}) {
  const clock = fakeClock();
  const flights: { readonly keys: readonly string[]; land(): void }[] = [];
  const queue = createKafkaQueue({
    clock,
    lingerMs: 1,
    recordsMax: 3,
    bytesMax: 100,
    send: (records) =>
      new Promise((resolve) => {
        const keys = records.map(({ key }) => key);
        const outcomes = keys.map((receipt): DeliveryOutcome => ({ kind: 'sent', receipt }));
        flights.push({ keys, land: () => resolve(outcomes) });
      }),
    ...options,
  });
  return { clock, flights, queue };
}

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('calls within lingerMs share a batch, and each gets its outcome', async () => {
  const { clock, flights, queue } = open();
  const calls = ['a', 'b'].map((key) => queue.publish([record(key)], never));
  await settled();
  assert.equal(flights.length, 0);
  await clock.advance(1);
  await settled();
  assert.deepEqual(flights[0]?.keys, ['a', 'b']);
  flights[0].land();
  assert.deepEqual(await Promise.all(calls), [
    [{ kind: 'sent', receipt: 'a' }],
    [{ kind: 'sent', receipt: 'b' }],
  ]);
});

test('a full batch is sent at once, and calls during its flight form the next batch', async () => {
  const { flights, queue } = open();
  const calls = ['a', 'b', 'c', 'd'].map((key) => queue.publish([record(key)], never));
  await settled();
  assert.deepEqual(flights[0]?.keys, ['a', 'b', 'c']);
  assert.equal(flights.length, 1);
  calls.push(queue.publish([record('e', 90)], never), queue.publish([record('f', 90)], never));
  flights[0].land();
  await settled();
  assert.deepEqual(flights[1]?.keys, ['d', 'e']);
  flights[1].land();
  await settled();
  assert.deepEqual(flights[2]?.keys, ['f']);
  flights[2].land();
  await Promise.all(calls);
});

test('the records of one call stay in one batch, however many', async () => {
  const { flights, queue } = open();
  const first = queue.publish([record('a')], never);
  const batch = queue.publish(
    ['b', 'c', 'd', 'e'].map((key) => record(key)),
    never,
  );
  await settled();
  flights[0]?.land();
  await first;
  await settled();
  assert.deepEqual(flights[1]?.keys, ['b', 'c', 'd', 'e']);
  flights[1].land();
  assert.equal((await batch).length, 4);
});

test('does not send a call that was cancelled in the queue; one cancelled in flight is ambiguous', async () => {
  const { clock, flights, queue } = open();
  const early = new AbortController();
  const late = new AbortController();
  const [cancelled, remaining] = [
    queue.publish([record('cancelled')], early.signal),
    queue.publish([record('remaining')], late.signal),
  ];
  early.abort();
  assert.deepEqual((await cancelled)[0], {
    kind: 'retry',
    error: 'the attempt was cancelled before it was sent',
    attempted: false,
  });
  await settled();
  await clock.advance(1);
  await settled();
  assert.deepEqual(flights[0]?.keys, ['remaining']);
  late.abort();
  const [outcome] = await remaining;
  assert.ok(outcome?.kind === 'retry' && outcome.ambiguous === true);
  flights[0].land();
});

test('closing waits for the batch in flight and rejects queued calls', async () => {
  const { flights, queue } = open();
  const calls = ['a', 'b', 'c', 'd'].map((key) => queue.publish([record(key)], never));
  await settled();
  const closed = queue.close();
  assert.deepEqual((await calls[3])?.[0], {
    kind: 'retry',
    error: 'the destination is closed',
    attempted: false,
  });
  flights[0]?.land();
  await closed;
  assert.equal((await calls[0])?.[0]?.kind, 'sent');
  assert.equal((await queue.publish([record('e')], never))[0]?.kind, 'retry');
});

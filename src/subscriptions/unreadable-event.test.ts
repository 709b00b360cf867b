// One stored event that cannot be read: a dead letter, and the subscription continues.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rejectsWith } from '../testing/assertions.ts';
import { createEventStore } from '../store/create-event-store.ts';
import type { StoredRow } from '../store/recorded-event.ts';
import type { AllPage, StoreEngine } from '../store/store-engine.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import { openMemory } from '../engines/memory/index.ts';
import { startSubscription } from './subscription-runner.ts';
import { subscription } from './subscription.ts';

const whole =
  '["2026-01-01T00:00:00.000Z","c",null,null,null,null,"core",{"bc":"b","type":"t","id":"1"}]';

/** Rows whose payload or metadata is damaged. */
const rows: readonly StoredRow[] = [
  ['{"n":1}', whole],
  ['{"n":', whole],
  ['{"n":3}', '{not json'],
  ['{"n":4}', whole],
].map(([payload = '', meta = ''], at) => ({
  sequence: at + 1,
  stream: 's',
  revision: at,
  eventId: `e${at + 1}`,
  type: 'x.y.v1',
  recordedAtMs: 0,
  payload,
  meta,
}));

function damagedEngine(): StoreEngine {
  const unused = (): never => assert.fail('not needed');
  return {
    capabilities: {
      multiStreamAppend: false,
      callerTransaction: false,
      durable: false,
      crossProcess: false,
    },
    write: unused,
    readStream: async () => ({ state: undefined, rows, end: true }),
    readAll: async ({ after, direction }): Promise<AllPage> =>
      direction === 'backwards'
        ? { rows: rows.slice(3), considered: 4, end: true }
        : { rows: rows.filter(({ sequence }) => sequence > after), considered: 4, end: true },
    findEvent: async (_stream, eventId) => rows.find((row) => row.eventId === eventId),
    head: async () => 4,
    whenMore: (_after, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
    scavenge: unused,
    subjectKeys: { get: async () => new Map(), forget: unused },
    async [Symbol.asyncDispose]() {},
  };
}

for (const batchSize of [1, 10]) {
  test(`an unreadable event is dead-lettered with its reason, with batches of ${batchSize}`, async () => {
    const clock = fakeClock();
    await using side = openMemory({ clock });
    await using store = createEventStore(damagedEngine(), { clock });
    const handled: string[] = [];
    const definition = { name: 'sub:banking:damaged:v1', onDeadLetter: 'continue' } as const;
    const roles = { store, subscriptions: side.subscriptions };
    await using runner = await startSubscription(
      roles,
      batchSize === 1
        ? subscription({ ...definition, handler: ({ eventId }) => void handled.push(eventId) })
        : subscription({
            ...definition,
            batchSize,
            batchHandler: (events) => void handled.push(...events.map(({ eventId }) => eventId)),
          }),
      { clock },
    );
    await until(clock, () => handled.length === 2);
    assert.deepEqual(runner.status.failing, []);
    assert.deepEqual(handled, ['e1', 'e4']);
    const { deadLetters } = side.subscriptions;
    await until(clock, async () => (await deadLetters.count({ status: 'pending' })) === 2);
    const letters = await deadLetters.list({}, { limit: 10 });
    assert.deepEqual(
      letters
        .map(({ eventId, error, attempts }) => ({ eventId, error, attempts }))
        .toSorted((a, b) => a.eventId.localeCompare(b.eventId)),
      ['e2', 'e3'].map((eventId, at) => ({
        eventId,
        error: `event ${eventId} (revision ${at + 1} of 's') is not valid JSON`,
        attempts: 1,
      })),
    );
  });
}

test('a read of an unreadable event fails and names the event', async () => {
  await using store = createEventStore(damagedEngine());
  const { details } = await rejectsWith(() => store.readStream('s').toArray(), 'STORE_CORRUPT');
  assert.deepEqual(details, { eventId: 'e2', stream: 's', revision: 1 });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from 'millrace/engines/sqlite';
import type { Clock } from 'millrace/foundation';
import { fakeClock } from 'millrace/testing';
import { createPace, paceLine } from './channel-pace.ts';

const line = paceLine('core', 'acme', 'C1');

/** An engine in a new folder, which is deleted when it closes. */
async function openKeys(clock: Clock) {
  const opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pace-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const { keys } = opened.use(await openSqlite(join(folder, 'pace.db'), { clock }));
  return { keys, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test('each caller reserves the next free time; a caller that would wait too long gets a delay', async () => {
  const clock = fakeClock();
  await using opened = await openKeys(clock);
  const pace = createPace({ keys: opened.keys, clock, waitMaxMs: 2_000 });
  const reservations = [];
  for (let at = 0; at < 4; at += 1) reservations.push(await pace.take(line, 1_000));
  assert.deepEqual(reservations, [
    { waitMs: 0 },
    { waitMs: 1_000 },
    { waitMs: 2_000 },
    { delayMs: 3_000 },
  ]);
  await clock.advance(10_000);
  assert.deepEqual(await pace.take(line, 1_000), { waitMs: 0 });
  assert.deepEqual(await pace.take(paceLine('core', 'acme', 'C2'), 1_000), { waitMs: 0 });
});

test('concurrent callers never reserve the same time', async () => {
  const clock = fakeClock();
  await using opened = await openKeys(clock);
  const pace = createPace({ keys: opened.keys, clock, waitMaxMs: 60_000 });
  const reservations = await Promise.all(Array.from({ length: 20 }, () => pace.take(line, 100)));
  const waits = reservations.map((reservation) =>
    'waitMs' in reservation ? reservation.waitMs : -1,
  );
  assert.deepEqual(
    waits.toSorted((a, b) => a - b),
    Array.from({ length: 20 }, (_, at) => at * 100),
  );
});

test('a paused channel grants no send time before the pause is over', async () => {
  const clock = fakeClock();
  await using opened = await openKeys(clock);
  const pace = createPace({ keys: opened.keys, clock, waitMaxMs: 2_000 });
  await pace.pause(line, 30_000);
  await pace.pause(line, 5_000);
  assert.deepEqual(await pace.take(line, 1_000), { delayMs: 30_000 });
});

// Read models on another server with an outage.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { assertTotal, newCounters } from '../testing/conformance/projections/projection-fixture.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { until } from '../testing/support/subscriptions/rig.ts';
import { documentsOf } from './documents.ts';
import type { ReadModelStore } from './read-model-store.ts';
import { startProjection } from './start-projection.ts';

test('a ten-second outage shows as lag, logs no line per event, and loses nothing', async () => {
  const clock = fakeClock();
  await using db = openMemory({ clock });
  const remote = openMemory({ clock }).readModels;
  let isDown = false;
  const guarded = <T>(work: () => Promise<T>): Promise<T> =>
    isDown
      ? Promise.reject(new MillraceError('STORE_UNAVAILABLE', 'the connection broke'))
      : work();
  const readModels: ReadModelStore = {
    ...remote,
    load: (model, keys) => guarded(() => remote.load(model, keys)),
    write: (model, writes) => guarded(() => remote.write(model, writes)),
  };
  const lines: string[] = [];
  const lags: number[] = [];
  const note =
    (level: string) =>
    (_fields: object, message: string): void =>
      void lines.push(`${level}: ${message}`);
  const observer: Observer = {
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    gauge: (name, value) => void (name === 'projection_lag_seconds' && lags.push(value)),
  };
  const counters = newCounters();
  // With the default retry policy.
  const counted = { ...counters.projection(), tuning: {} };
  const ids = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const append = () =>
    Promise.all(ids.map((id) => db.store.append(counters.stream(id), counters.add(1))));

  await using runner = await startProjection({ ...db, readModels }, counted, { clock, observer });
  await append();
  await until(clock, async () => (await runner.lag()).behind === 0);
  isDown = true;
  const downSinceMs = clock.now();
  for (let second = 0; second < 10; second += 1) {
    await append();
    await clock.advance(1_000);
  }
  await until(clock, () => clock.now() - downSinceMs >= 10_000 && Math.max(...lags) >= 5);
  isDown = false;
  await until(clock, async () => (await runner.lag()).behind === 0);
  const documents = documentsOf(remote, counted.readModel);
  for (const id of ids) {
    await assertTotal(
      documents,
      id,
      Array.from({ length: 11 }, () => 1),
    );
  }
  assert.deepEqual(
    lines.filter((line) => !line.startsWith('debug')),
    ['info: shard acquired'],
  );
  assert.equal(await db.subscriptions.deadLetters.count({ handler: counted.name }), 0);
});

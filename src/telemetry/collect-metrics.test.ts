import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { collectMetrics, type Collector } from './collect-metrics.ts';
import { createMetrics, type Sample } from './create-metrics.ts';
import { processCollector } from './collectors.ts';

function depthOf(collect: Collector['collect'], name = 'queues'): Collector {
  return { name, metrics: ['queue_depth'], collect };
}

const depth = (queue: string, value: number): Sample => ({
  name: 'queue_depth',
  value,
  labels: { queue },
});

test('runs a collector once while its result is fresh, however often metrics are scraped', async () => {
  const clock = fakeClock();
  const metrics = createMetrics();
  let collections = 0;
  const collect = collectMetrics(
    metrics,
    [
      depthOf(async () => {
        collections += 1;
        return [depth('a', collections)];
      }),
    ],
    { clock, freshMs: 1_000 },
  );
  await Promise.all([collect(), collect(), collect()]);
  await collect();
  assert.equal(collections, 1);
  assert.match(metrics.expose(), /queue_depth\{queue="a"\} 1/);
  await clock.advance(1_001);
  await collect();
  assert.match(metrics.expose(), /queue_depth\{queue="a"\} 2/);
});

test('runs a slow collector less often', async () => {
  const clock = fakeClock();
  let collections = 0;
  const slow = depthOf(async () => {
    collections += 1;
    await clock.advance(1_500);
    return [];
  });
  const collect = collectMetrics(createMetrics(), [slow], { clock, freshMs: 1_000 });
  await collect();
  await clock.advance(29_000);
  await collect();
  assert.equal(collections, 1);
  await clock.advance(1_001);
  await collect();
  assert.equal(collections, 2);
});

test('does not wait for a hanging collector, does not run it twice, and uses its late result', async () => {
  const clock = fakeClock();
  const metrics = createMetrics();
  const collected = Promise.withResolvers<readonly Sample[]>();
  const signals: AbortSignal[] = [];
  const collect = collectMetrics(
    metrics,
    [
      depthOf((signal) => {
        signals.push(signal);
        return collected.promise;
      }),
    ],
    { clock, timeoutMs: 2_000 },
  );
  for (let scrape = 0; scrape < 3; scrape += 1) {
    const scraped = collect();
    await clock.advance(2_001);
    await scraped;
    assert.match(metrics.expose(), /telemetry_collector_up\{collector="queues"\} 0/);
    assert.doesNotMatch(metrics.expose(), /^queue_depth/m);
  }
  assert.equal(signals.length, 1);
  assert.equal(signals[0]?.aborted, true);
  collected.resolve([depth('a', 9)]);
  await collect();
  assert.match(metrics.expose(), /queue_depth\{queue="a"\} 9/);
  assert.match(metrics.expose(), /telemetry_collector_up\{collector="queues"\} 1/);
});

test('logs a failing collector, removes its old samples and keeps those of others', async () => {
  const clock = fakeClock();
  const metrics = createMetrics();
  let isBroken = false;
  const logs: unknown[] = [];
  const log = (fields: object): void => void logs.push(fields);
  const collect = collectMetrics(
    metrics,
    [
      depthOf(() => {
        if (isBroken) throw new Error('the database is away');
        return [depth('a', 1)];
      }),
      depthOf(() => [depth('b', 2)], 'others'),
    ],
    { clock, freshMs: 1, log: { debug: log, info: log, warn: log, error: log } },
  );
  await collect();
  assert.match(metrics.expose(), /queue="a"[^]*queue="b"/);
  isBroken = true;
  await clock.advance(2);
  await collect();
  assert.doesNotMatch(metrics.expose(), /queue="a"/);
  assert.match(metrics.expose(), /queue_depth\{queue="b"\} 2/);
  assert.equal(logs.length, 1);
});

test('the process collector returns all its metrics', async () => {
  using collector = processCollector();
  const metrics = createMetrics();
  await collectMetrics(metrics, [collector])();
  const text = metrics.expose();
  for (const name of collector.metrics) assert.match(text, new RegExp(`^${name}[ {]`, 'm'));
  assert.ok(Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]) > 1_000_000);
});

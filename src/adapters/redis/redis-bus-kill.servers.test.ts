import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bus } from '../../bus/bus.ts';
import { eventually } from '../../bus/bus-fixture.conformance.ts';
import { systemClock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { redisBus } from './redis-bus.ts';

const types = ['a', 'b', 'c'];
const subjectOf = (type: string): string => `gbe.tasks.${type}.queue`;
const kills = 3;
const perKill = 40;

/** As whoever uses the bus does: the same again, until the server has taken it. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
      await systemClock.sleep(5);
    }
  }
}

/** Takes everything that it is given, and writes down in which order. */
async function take(
  bus: Bus,
  definition: Parameters<Bus['group']>[0],
  { seen, signal }: { readonly seen: Map<string, number[]>; readonly signal: AbortSignal },
): Promise<void> {
  const acked = new Set<string>();
  const group = await insist(() => bus.group(definition));
  while (!signal.aborted) {
    const deliveries = await insist(() => group.fetch({ limit: 10, waitMs: 200 }));
    for (const delivery of deliveries) {
      const { id, subject, payload } = delivery;
      assert.ok(!acked.has(id), `${id} came again after its ack was confirmed`);
      const numbers = seen.get(subject) ?? [];
      seen.set(subject, numbers);
      const { n } = payload as { readonly n: number };
      if (!numbers.includes(n)) numbers.push(n);
      if ((await insist(() => delivery.ack())) === 'settled') acked.add(id);
    }
  }
}

test('a Redis that is killed while messages flow loses none that it confirmed, and keeps the order', async () => {
  await using server = await startRedis({ appendOnly: 'always' });
  await using bus = await redisBus(server.url);
  const stopping = new AbortController();
  const { signal } = stopping;
  const [strict, all] = [new Map<string, number[]>(), new Map<string, number[]>()];
  const leaseMs = 500;
  const takers = [
    ...types.map((type) =>
      take(
        bus,
        { group: `strict-${type}`, subject: subjectOf(type), maxAckPending: 1, leaseMs },
        { seen: strict, signal },
      ),
    ),
    take(bus, { group: 'all', subject: 'gbe.>', leaseMs }, { seen: all, signal }),
  ];
  const failed = Promise.race(takers);
  failed.catch(() => undefined);

  let published = 0;
  async function publish(count: number): Promise<void> {
    for (const until = published + count; published < until; published += 1) {
      const payload = { n: published };
      await insist(() =>
        bus.publishMany(
          types.map((type) => ({ subject: subjectOf(type), id: `${type}-${payload.n}`, payload })),
        ),
      );
    }
  }
  for (let kill = 0; kill < kills; kill += 1) {
    const publishing = publish(perKill);
    const some = kill * perKill + 10 * kill + 5;
    await eventually('it is under way', async () => published >= some);
    await server.kill();
    await server.start();
    await publishing;
  }

  const expected = Array.from({ length: published }, (_, n) => n);
  const isDone = (seen: ReadonlyMap<string, readonly number[]>): boolean =>
    types.every((type) => seen.get(subjectOf(type))?.length === published);
  await Promise.race([
    failed,
    eventually('everything came', async () => isDone(strict) && isDone(all)),
  ]);
  stopping.abort();
  await Promise.all(takers);
  for (const type of types) {
    assert.deepEqual(strict.get(subjectOf(type)), expected, 'strictly in order');
    const came = all.get(subjectOf(type))?.toSorted((a, b) => a - b);
    assert.deepEqual(came, expected, 'all of it');
    const stored = await Array.fromAsync(bus.read(subjectOf(type)));
    assert.equal(stored.length, published, 'each once');
  }
});

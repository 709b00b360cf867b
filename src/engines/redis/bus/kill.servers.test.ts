import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/assertions.ts';
import type { Bus } from '../../../bus/bus.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { openRedis } from '../open-redis.ts';

const types = ['a', 'b', 'c'];
const subjectOf = (type: string): string => `gbe.tasks.${type}.queue`;
const kills = 3;
const perKill = 40;

/** Retries until the server accepts the call, as an application does. */
async function retryUntilDone<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
      await systemClock.sleep(5);
    }
  }
}

/** Consumes all messages and records their order. */
async function consume(
  bus: Bus,
  definition: Parameters<Bus['group']>[0],
  { seen, signal }: { readonly seen: Map<string, number[]>; readonly signal: AbortSignal },
): Promise<void> {
  const acked = new Set<string>();
  const group = await retryUntilDone(() => bus.group(definition));
  while (!signal.aborted) {
    const deliveries = await retryUntilDone(() => group.fetch({ limit: 10, waitMs: 200 }));
    for (const delivery of deliveries) {
      const { id, subject, payload } = delivery;
      assert.ok(!acked.has(id), `${id} was redelivered after its confirmed ack`);
      const numbers = seen.get(subject) ?? [];
      seen.set(subject, numbers);
      const { n } = payload as { readonly n: number };
      if (!numbers.includes(n)) numbers.push(n);
      if ((await retryUntilDone(() => delivery.ack())) === 'settled') acked.add(id);
    }
  }
}

test('a killed Redis loses no confirmed message and keeps the order', async () => {
  await using server = await startRedis({ appendOnly: 'always' });
  await using redis = await openRedis(server.url);
  const { bus } = redis;
  const stopping = new AbortController();
  const { signal } = stopping;
  const [strict, all] = [new Map<string, number[]>(), new Map<string, number[]>()];
  const leaseMs = 500;
  const consumers = [
    ...types.map((type) =>
      consume(
        bus,
        { group: `strict-${type}`, subject: subjectOf(type), maxAckPending: 1, leaseMs },
        { seen: strict, signal },
      ),
    ),
    consume(bus, { group: 'all', subject: 'gbe.>', leaseMs }, { seen: all, signal }),
  ];
  const failed = Promise.race(consumers);
  failed.catch(() => undefined);

  let published = 0;
  async function publish(count: number): Promise<void> {
    for (const until = published + count; published < until; published += 1) {
      const payload = { n: published };
      await retryUntilDone(() =>
        bus.publishMany(
          types.map((type) => ({ subject: subjectOf(type), id: `${type}-${payload.n}`, payload })),
        ),
      );
    }
  }
  for (let kill = 0; kill < kills; kill += 1) {
    const publishing = publish(perKill);
    const some = kill * perKill + 10 * kill + 5;
    await eventually('messages are being published', async () => published >= some);
    await server.kill();
    await server.start();
    await publishing;
  }

  const expected = Array.from({ length: published }, (_, n) => n);
  const isDone = (seen: ReadonlyMap<string, readonly number[]>): boolean =>
    types.every((type) => seen.get(subjectOf(type))?.length === published);
  await Promise.race([
    failed,
    eventually('all messages arrived', async () => isDone(strict) && isDone(all)),
  ]);
  stopping.abort();
  await Promise.all(consumers);
  for (const type of types) {
    assert.deepEqual(strict.get(subjectOf(type)), expected, 'strictly in order');
    const received = all.get(subjectOf(type))?.toSorted((a, b) => a - b);
    assert.deepEqual(received, expected, 'all messages');
    const stored = await Array.fromAsync(bus.read(subjectOf(type)));
    assert.equal(stored.length, published, 'each message once');
  }
});

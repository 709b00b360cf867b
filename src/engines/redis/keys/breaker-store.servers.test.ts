import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { breakerStoreConformance } from '../../../testing/conformance/delivery/breaker-store.ts';
import type { BreakerStore } from '../../../delivery/breaker-store.ts';
import { createDelivery } from '../../../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../../delivery/delivery-outcome.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

const { url, keyPrefix } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const breakersKey = `${keyPrefix}breakers`;
  const [first, other] = [
    await openRedis(target, { breakersKey }),
    await openRedis(target, { breakersKey }),
  ];
  after(async () => {
    await first[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  for (const each of breakerStoreConformance({
    store: first.breakers,
    second: other.breakers,
  })) {
    test(`breakers in ${name}: ${each.name}`, each.run);
  }
}

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'partner',
  eventType: 'payment.completed.v1',
  payload: {},
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const untilMs = systemClock.now() + 60_000;
  while (!(await holds())) {
    if (systemClock.now() > untilMs) assert.fail(`timed out after a minute: ${what}`);
    await systemClock.sleep(20);
  }
}

test('processes share an open breaker, and use separate breakers while Redis is unreachable', async () => {
  await using server = await startRedis();
  await using first = await openRedis(server.url);
  await using second = await openRedis(server.url);
  let outcome: DeliveryOutcome = { kind: 'retry', error: 'HTTP 500' };
  const open = (breakers: BreakerStore, openMs: number) =>
    createDelivery({
      breakers,
      destinations: {
        partner: { send: async () => outcome, breaker: { openMs, openMsMax: openMs } },
      },
    });
  const [one, two] = [open(first.breakers, 600_000), open(second.breakers, 600_000)];
  const isBlocked = async ({ deliver }: typeof one): Promise<boolean> => {
    const result = await deliver(message);
    return result.kind === 'retry' && result.attempted === false;
  };
  await until('the breaker opens', () => isBlocked(one));
  outcome = { kind: 'sent' };
  await until('the other process sees the open breaker', () => isBlocked(two));

  await server.kill();
  assert.equal(await isBlocked(two), true, 'a known open breaker stays open');
  outcome = { kind: 'retry', error: 'HTTP 500' };
  const alone = open(first.breakers, 1);
  // The breaker opens after failures in this process, and probes without asking Redis.
  await until('the breaker opens without Redis', async () => {
    await alone.deliver(message);
    return alone.breakerOf('partner').kind !== 'closed';
  });
  outcome = { kind: 'sent' };
  await until('the breaker closes without Redis', async () => {
    await alone.deliver(message);
    return alone.breakerOf('partner').kind === 'closed';
  });
});

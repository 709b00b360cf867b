import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue } from 'bullmq';
import { redisKeys } from '../../contracts/index.ts';
import { createTelemetry, platformCollectors } from '../../telemetry/index.ts';
import { sharedRedis } from '../../testing/servers/shared-servers.ts';
import { createPlatform, defineModule, type ModuleContext } from '../index.ts';

test('the depth of the queues of modules is a metric, also of jobs that other programs add', async () => {
  const { url, keyPrefix } = await sharedRedis();
  const tenant = keyPrefix.replaceAll(/[^a-z0-9]/g, '');
  const name = redisKeys.queue(tenant, 'paymenthub', 'payment', 1, 'process');
  let context: ModuleContext | undefined;
  const shop = defineModule({
    name: 'shop',
    uses: ['queue'],
    services: (given) => {
      context = given;
      return [];
    },
  });
  await using telemetry = await createTelemetry({ env: { MILLRACE_LOG_LEVEL: 'silent' } });
  await using platform = await createPlatform({
    engines: { store: 'memory:', queue: url },
    modules: [shop],
    observer: telemetry.observer,
  });
  telemetry.collect(platformCollectors(platform));
  assert.doesNotMatch(await telemetry.metrics(), /queue_depth\{queue="mq:/);
  const queue = await context?.workQueue();
  await queue?.add(name, [{ id: 'job-a', name: 'process', data: { paymentId: 'p-1' } }]);
  const { hostname, port } = new URL(url);
  const at = name.lastIndexOf(':');
  const plain = new Queue(name.slice(at + 1), {
    connection: { host: hostname, port: Number(port) },
    prefix: name.slice(0, at),
  });
  await plain.add('process', { paymentId: 'p-2' });
  await plain.close();
  // The first scrape is still fresh, so a second set of collectors asks again.
  await using again = await createTelemetry({ env: { MILLRACE_LOG_LEVEL: 'silent' } });
  again.collect(platformCollectors(platform));
  const lines = (await again.metrics()).split('\n');
  assert.deepEqual(
    lines.filter((line) => line.startsWith('queue_depth{queue="mq:')),
    [`queue_depth{queue="${name}"} 2`],
  );
});

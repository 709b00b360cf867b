import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlatform, defineModule } from '../../platform/index.ts';
import { subscription } from '../../subscriptions/index.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { until } from '../../testing/support/subscriptions/rig.ts';
import { startApi } from './start-api.ts';

test('readiness fails while a subscription ends again and again, and recovers with it', async () => {
  const clock = fakeClock();
  const handled: string[] = [];
  const module = defineModule({
    name: 'bank',
    subscriptions: [
      subscription({
        name: 'sub:banking:alarm:v1',
        handler: ({ type }) => void handled.push(type),
      }),
    ],
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [module],
    clock,
  });
  const { store } = platform.engines;
  const before = { ...store };
  let attempts = 0;
  Object.assign(store, {
    // oxlint-disable-next-line require-yield
    async *subscribe() {
      attempts += 1;
      throw new Error('Loss of precision reading BigInt');
    },
  });
  await platform.start();
  // The test asks again and again.
  const often = { perSecond: 10_000, burst: 10_000 };
  const rateLimits = { known: often, unknown: often };
  await using server = await startApi(platform, { port: 0, rateLimits });
  const ready = async (): Promise<readonly [number, unknown]> => {
    const response = await fetch(`${server.url}/health/ready`);
    const { checks } = (await response.json()) as { readonly checks: Record<string, unknown> };
    return [response.status, checks['subscriptions']];
  };
  await until(clock, async () => (await ready())[0] === 503);
  assert.ok(attempts >= 3);
  const [, check] = await ready();
  assert.match(JSON.stringify(check), /"failing".*\d end again and again without progress/);
  Object.assign(store, before);
  await until(clock, async () => (await ready())[0] === 200);
  assert.deepEqual(await ready(), [200, undefined]);
});

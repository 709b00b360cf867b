import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newEvent, newStream } from '../testing/conformance/store/fixture.ts';
import { startRedis } from '../testing/servers/redis-server.ts';
import { createPlatform } from './create-platform.ts';
import { defineModule } from './modules/platform-module.ts';

test('with a queue, workers send the messages that the dispatcher claimed', async () => {
  await using redis = await startRedis();
  const sent = Promise.withResolvers<unknown>();
  await using platform = await createPlatform({
    engines: { store: 'memory:', queue: redis.url },
    modules: [
      defineModule({
        name: 'banking',
        outbox: [
          {
            name: 'sub:banking:outbox:v1',
            mapper: {
              map: ({ type }) => ({
                integrationType: 'post:letters',
                eventType: type,
                payload: { to: 'Ada' },
              }),
            },
          },
        ],
        destinations: { post: async ({ payload }) => sent.resolve(payload) },
      }),
    ],
  });
  assert.ok(platform.engines.deliveryQueue);
  await platform.start();
  await platform.engines.store.append(newStream(), [newEvent()]);
  assert.deepEqual(await sent.promise, { to: 'Ada' });
});

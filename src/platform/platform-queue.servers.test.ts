import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { eventually } from '../testing/assertions.ts';
import { newEvent, newStream } from '../testing/conformance/store/fixture.ts';
import { startRedis } from '../testing/servers/redis-server.ts';
import { createPlatform } from './create-platform.ts';
import { defineModule } from './modules/platform-module.ts';

const redis = await startRedis();
const folder = await mkdtemp(join(tmpdir(), 'millrace-platform-queue-'));
after(async () => {
  await redis[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

for (const queue of ['memory:', `sqlite:${folder}/queue.db`, redis.url]) {
  test(`with a queue in ${queue.replace(/:.*/, '')}, workers send the messages that the dispatcher claimed`, async () => {
    const sent = Promise.withResolvers<unknown>();
    await using platform = await createPlatform({
      engines: { store: 'memory:', queue },
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
    const { outbox, outboxQueue, store } = platform.engines;
    assert.ok(outboxQueue !== undefined && outbox !== undefined);
    await platform.start();
    await store.append(newStream(), [newEvent()]);
    assert.deepEqual(await sent.promise, { to: 'Ada' });
    await eventually('it is settled', async () => (await outbox.counts()).SENT === 1);
    const [message] = await outbox.list({});
    assert.deepEqual(
      message?.jobs?.map((job) => [job.queue, job.outcome]),
      [['outbox-post~letters', 'sent']],
    );
  });
}

import { test } from 'node:test';
import { startRedis } from 'millrace/testing';
import { readModelsStory } from './testing/read-models-story.ts';

test('the read models return the same results on Redis', async () => {
  await using redis = await startRedis();
  await readModelsStory({ store: 'memory:', keys: redis.url });
});

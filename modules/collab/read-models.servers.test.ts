import { test } from 'node:test';
import { startRedis } from 'millrace/testing';
import { readModelsStory } from './testing/read-models-story.ts';

test('documents answer the same questions in Redis', async () => {
  await using redis = await startRedis();
  await readModelsStory({ store: 'memory:', keys: redis.url });
});

import { test } from 'node:test';
import { readModelsStory } from './testing/read-models-story.ts';

test('the read models return the same results in memory', async () => {
  await readModelsStory({ store: 'memory:' });
});

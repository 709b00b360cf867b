import { test } from 'node:test';
import { readModelsStory } from './testing/read-models-story.ts';

test('documents answer the same questions in memory', async () => {
  await readModelsStory({ store: 'memory:' });
});

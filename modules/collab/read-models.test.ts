import { test } from 'node:test';
import { readModelsStory } from './read-models-story.test.ts';

test('documents answer the same questions in memory', async () => {
  await readModelsStory({ store: 'memory:' });
});

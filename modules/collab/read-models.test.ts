import { test } from 'node:test';
import { readModelsStory } from './testing/read-models-story.ts';

test('the read models give the same answers in memory', async () => {
  await readModelsStory({ store: 'memory:' });
});

import { test } from 'node:test';
import { slackStories } from './slack-stories.ts';

for (const [name, run] of Object.entries(slackStories)) {
  test(`embedded: ${name}`, () => run({ store: 'memory:' }));
}

import { test } from 'node:test';
import { slackStories } from './testing/slack-stories.ts';

for (const [name, run] of Object.entries(slackStories)) {
  test(`embedded: ${name}`, () => run({ store: 'memory:' }));
}

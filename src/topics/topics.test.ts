import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import type { TopicBus } from './topic-bus.ts';
import { openTopics } from './topics.ts';

test('an unknown durability is rejected with CONFIG_INVALID', async () => {
  const durability = 'readers-first' as 'synced';
  const opening = openTopics({} as TopicBus, { durability });
  await assert.rejects(opening, (error) => hasCode(error, 'CONFIG_INVALID'));
});

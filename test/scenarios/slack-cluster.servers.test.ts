// Slack requests with keys and queue on a Redis Cluster, where each tenant has one slot.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { slackStories } from '../../modules/slack-requests/testing/slack-stories.ts';
import { startRedisCluster, type RedisCluster } from '../../src/testing/index.ts';
import { createWorkspace, soakMinutes } from '../store/rig.ts';
import { slackKilledAt } from './slack-killed.ts';

let cluster: RedisCluster;
before(async () => {
  cluster = await startRedisCluster();
});
after(() => cluster[Symbol.asyncDispose]());

function clusterUrl(): string {
  return `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
}

async function onEachNode<Result>(ask: (node: Redis) => Promise<Result>): Promise<Result[]> {
  const clients = cluster.urls.map((url) => new Redis(url));
  try {
    return await Promise.all(clients.map(ask));
  } finally {
    for (const client of clients) client.disconnect();
  }
}

/** A single Redis runs all stories; in `npm test` a cluster runs those about locks, delayed jobs and slots. */
const storiesOfShortForm: readonly string[] = [
  'a rate limit releases the lock, delays the job and does not count as an attempt',
  'workspaces, requests and locks are separate per tenant',
];
const stories = Object.entries(slackStories);
const isChosen = (name: string): boolean => soakMinutes > 0 || storiesOfShortForm.includes(name);
test('the stories of the short form exist', () => {
  const missing = storiesOfShortForm.filter((name) => !Object.hasOwn(slackStories, name));
  assert.deepEqual(missing, []);
});
for (const [name, run] of stories.filter(([story]) => isChosen(story))) {
  test(`Redis Cluster: ${name}`, async () => {
    await onEachNode((node) => node.flushall());
    await run({ store: 'memory:', keys: clusterUrl(), queue: clusterUrl() });
  });
}

test('Redis Cluster: a process that is killed at a step posts each Slack request exactly once', async () => {
  await onEachNode((node) => node.flushall());
  await using workspace = await createWorkspace();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const engines = { store, keys: clusterUrl(), queue: clusterUrl() };
  await slackKilledAt(['after queue.add'], engines);
  const nodes = await onEachNode((node) => node.keys('*'));
  const holders = (start: string): number =>
    nodes.filter((keys) => keys.some((key) => key.startsWith(start))).length;
  assert.equal(holders('notification.slack:v1:{core}:'), 1);
  assert.equal(holders('{bull}:MessageRequestQueue:'), 1);
});

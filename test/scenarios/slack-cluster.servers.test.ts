// Slack requests whole on a Redis Cluster: keys and queue, each tenant in one slot.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import { slackStories } from '../../modules/slack-requests/slack-stories.test.ts';
import { startRedisCluster, type RedisCluster } from '../../src/testing/index.ts';
import { createWorkspace, newSeed, sampled } from '../store/rig.ts';
import { slackKilledAtEveryStep } from './slack-killed.ts';

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

// On one Redis all of them are told each time; here some, which each run chooses, and in the soak all.
const seed = newSeed();
for (const [name, run] of sampled(Object.entries(slackStories), 2, seed)) {
  test(`Redis Cluster: ${name}`, async (t) => {
    t.diagnostic(`MILLRACE_SEED=${seed}`);
    await onEachNode((node) => node.flushall());
    await run({ store: 'memory:', keys: clusterUrl(), queue: clusterUrl() });
  });
}

test('on a Redis Cluster: killed at every step, each request is posted exactly once', async (t) => {
  await onEachNode((node) => node.flushall());
  await using workspace = await createWorkspace();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await slackKilledAtEveryStep({ store, keys: clusterUrl(), queue: clusterUrl() }, t, 1);
  const nodes = await onEachNode((node) => node.keys('*'));
  const holders = (start: string): number =>
    nodes.filter((keys) => keys.some((key) => key.startsWith(start))).length;
  assert.equal(holders('notification.slack:v1:{core}:'), 1);
  assert.equal(holders('{bull}:MessageRequestQueue:'), 1);
});

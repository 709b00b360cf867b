// A Redis that loses all data under a reactor and a saga whose checkpoints it stores: EventStoreDB and Redis alone. The
// operator continues with the command line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { createPlatform, type Platform, type PlatformModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { contextOf, open, settled, streamsOf } from '../bounded-contexts.ts';
import { runMillrace, workFolder } from '../cli-store-terminal.ts';

const { outbox: _, destinations: __, ...parts } = contextOf('banking');
const banking: PlatformModule = parts;
const handlers = ['sub:banking:greetings:v1', 'sub:banking:welcome:v1'];

test('a reactor and a saga whose checkpoints Redis loses send nothing until an operator resets them', async () => {
  await using folder = await workFolder();
  await using redis = await startRedis();
  await using server = await startStandIn({ preset: '24.10' });
  const engines = { store: server.url, keys: redis.url };
  await using platform: Platform = await createPlatform({ engines, modules: [banking] });
  await platform.start();
  const { store } = platform.engines;
  const account = (id: string) =>
    platform.handle({
      tenant: 'core',
      id,
      aggregate: 'banking.account.v1',
      command: open({ owner: id }),
    });
  const reactions = async (): Promise<readonly string[]> => [
    ...(await streamsOf(platform, 'banking.letter.v1-')),
    ...(await streamsOf(platform, 'banking.welcome.v1-')),
  ];
  const caused = (...ids: readonly string[]): string[] => [
    ...[...ids, ...ids.map((id) => `saga-${id}`)].map((id) => `banking.letter.v1-core-${id}`),
    ...ids.map((id) => `banking.welcome.v1-core-${id}`),
  ];
  await account('a');
  await account('b');
  await settled(platform);
  assert.deepEqual(await reactions(), caused('a', 'b'));
  const last = await store.head();

  await using opened = new AsyncDisposableStack();
  const keys = new Redis(redis.url);
  opened.defer(() => keys.disconnect());
  await keys.flushall();
  await keys.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const stopped = (): readonly string[] =>
    platform.failingShards().flatMap((each) => (each.isCheckpointLost ? each.subscription : []));
  await eventually('both handlers have stopped', () => stopped().length === handlers.length);
  assert.deepEqual(stopped().toSorted(), handlers);
  await account('c');
  await eventually('the projection is rebuilt', async () => {
    const { items } = await platform
      .documents({ bc: 'banking', aggregate: 'account' })
      .bySet('core', 'all')
      .catch(() => ({ items: [] }));
    return items.length === 3;
  });
  await using api = await startApi(platform, { port: 0 });
  const ready = await fetch(`${api.url}/health/ready`);
  assert.deepEqual([ready.status, /2 lost: reset/.test(await ready.text())], [503, true]);
  assert.deepEqual(await reactions(), caused('a', 'b'));

  const env = { MILLRACE_STORE: server.url, MILLRACE_KEYS: redis.url };
  for (const name of handlers) {
    const line = ['subscriptions', 'reset', name, '--to', String(last), '--yes'];
    const { code, stderr } = await runMillrace(line, { cwd: folder.path, env });
    assert.deepEqual([code, stderr], [0, '']);
  }
  await eventually('the new account is handled', async () => (await reactions()).length === 9);
  assert.deepEqual((await reactions()).toSorted(), caused('a', 'b', 'c').toSorted());
  for (const id of ['a', 'b']) {
    const letter = await store.readStream(`banking.letter.v1-core-${id}`).toArray();
    assert.equal(letter.length, 1);
  }
});

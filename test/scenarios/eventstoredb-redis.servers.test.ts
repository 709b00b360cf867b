// The stack of the naming document, EventStoreDB and Redis alone, as another service sees it: events by the official
// client, keys and checkpoint by a Redis client. EventStoreDB is the stand-in, or the server of MILLRACE_TEST_KURRENTDB.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { KurrentDBClient, jsonEvent } from '@kurrent/kurrentdb-client';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { createWorkspace, isText } from '../store/rig.ts';
import type { StackInput } from './eventstoredb-redis-main.ts';
import { bankingOf } from './eventstoredb-redis-module.ts';

const given = process.env['MILLRACE_TEST_KURRENTDB'];
// A given server may contain the events of earlier runs.
const aggregateOf = (name: string): string =>
  given === undefined ? name : `${name}${randomUUID().slice(0, 8)}`;

test('EventStoreDB and Redis are a complete deployment: read models, checkpoint and restart', async () => {
  const aggregate = aggregateOf('currency');
  await using workspace = await createWorkspace();
  await using redis = await startRedis({ appendOnly: 'always' });
  await using opened = new AsyncDisposableStack();
  const store = given ?? opened.use(await startStandIn({ preset: '24.10' })).url;
  const keys = new Redis(redis.url);
  opened.defer(() => keys.disconnect());
  const client = KurrentDBClient.connectionString(store);
  opened.defer(() => client.dispose());
  const mails: string[] = [];
  const { currencies, reactor, module } = bankingOf(aggregate, ({ stream }) => {
    mails.push(stream.slice(-3));
  });
  const start = async (): Promise<Platform> => {
    const platform = await createPlatform({
      engines: { store, keys: redis.url },
      modules: [module],
      isProduction: true,
      localUrl: `sqlite:${join(workspace.folder, 'local.db')}`,
    });
    await platform.start();
    return platform;
  };
  const create = async (code: string): Promise<bigint> => {
    const metadata = { tenant: 'core', $correlationId: randomUUID() };
    const data = { code, name: `currency ${code}` };
    const event = jsonEvent({ type: `${aggregate}.created.v1`, data, metadata });
    const { position } = await client.appendToStream(`banking.${aggregate}.v1-core-${code}`, event);
    return position?.commit ?? 0n;
  };
  const positionIn = async (subscriptionName: string): Promise<bigint> => {
    const text = await keys.get(`checkpoint:esdb:${subscriptionName}`);
    return BigInt((JSON.parse(text ?? '{"commit":"0"}') as { readonly commit: string }).commit);
  };
  const passed = (position: bigint) =>
    eventually('both checkpoints have passed the event', async () => {
      const found = await Promise.all([currencies.name, reactor].map(positionIn));
      return found.every((each) => each >= position);
    });

  {
    await using platform = await start();
    await create('USD');
    await passed(await create('ZAR'));
    assert.equal(platform.state, 'started');
  }
  const base = `app:{core}:banking:${aggregate}:v1`;
  assert.deepEqual(JSON.parse((await keys.get(`${base}:USD`)) ?? ''), {
    code: 'USD',
    name: 'currency USD',
  });
  assert.deepEqual(await keys.hgetall(`${base}:index:by-code`), { USD: 'USD', ZAR: 'ZAR' });
  assert.deepEqual((await keys.smembers(`${base}:set:all`)).toSorted(), ['USD', 'ZAR']);
  assert.deepEqual(mails, ['USD', 'ZAR']);

  // Another program continues where the projection is: nothing of the category is left.
  const text = (await keys.get(`checkpoint:esdb:${currencies.name}`)) ?? '';
  assert.match(text, /^\{"commit":"\d+","prepare":"\d+"\}$/);
  const { commit, prepare } = JSON.parse(text) as Record<'commit' | 'prepare', string>;
  const fromPosition = { commit: BigInt(commit), prepare: BigInt(prepare) };
  const left: string[] = [];
  for await (const { event } of client.readAll({ fromPosition })) {
    if (event?.position.commit !== fromPosition.commit) left.push(event?.type ?? '');
  }
  assert.deepEqual(
    left.filter((type) => type.startsWith(`${aggregate}.`)),
    [],
  );

  await redis.kill();
  await redis.start();
  {
    await using platform = await start();
    await passed(await create('EUR'));
    assert.deepEqual(mails, ['USD', 'ZAR', 'EUR']);
    assert.equal(
      (await platform.documents({ bc: 'banking', aggregate }).get('core', 'EUR'))?.document !==
        undefined,
      true,
    );

    // All of Redis is lost: the documents return, and no mail is sent again.
    await keys.flushall();
    await keys.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually('all documents are restored', async () =>
      (
        await Promise.all(['USD', 'ZAR', 'EUR'].map((code) => keys.exists(`${base}:${code}`)))
      ).every((found) => found === 1),
    );
    await eventually('the handler has stopped', () =>
      platform.failingShards().some(({ isCheckpointLost }) => isCheckpointLost),
    );
    const last = await create('JPY');
    assert.deepEqual(mails, ['USD', 'ZAR', 'EUR']);
    const [event] = await platform.engines.store
      .readStream(`banking.${aggregate}.v1-core-EUR`)
      .toArray();
    await platform.subscriptions.reset(reactor, { to: event?.position, by: 'ada' });
    await passed(last);
    assert.deepEqual(mails, ['USD', 'ZAR', 'EUR', 'JPY']);
  }
  assert.deepEqual(await readdir(workspace.folder), []);
});

test('a killed process loses no event, and repeats none behind its checkpoint in Redis', async () => {
  const aggregate = aggregateOf('coin');
  const { currencies, reactor } = bankingOf(aggregate, () => undefined);
  await using workspace = await createWorkspace();
  await using redis = await startRedis({ appendOnly: 'always' });
  await using opened = new AsyncDisposableStack();
  const store = given ?? opened.use(await startStandIn({ preset: '24.10' })).url;
  const keys = new Redis(redis.url);
  opened.defer(() => keys.disconnect());
  const client = KurrentDBClient.connectionString(store);
  opened.defer(() => client.dispose());
  const effects = join(workspace.folder, 'effects');
  const start = (killAt: string): Child => {
    const localUrl = `sqlite:${join(workspace.folder, 'local.db')}`;
    const input: StackInput = { store, keys: redis.url, localUrl, aggregate, effects, killAt };
    const script = new URL('./eventstoredb-redis-main.ts', import.meta.url);
    return opened.use(startChild(script, { input }));
  };
  const commits: bigint[] = [];
  const create = async (name: string): Promise<void> => {
    const metadata = { tenant: 'core', $correlationId: randomUUID() };
    const event = jsonEvent({
      type: `${aggregate}.created.v1`,
      data: { code: 'USD', name },
      metadata,
    });
    const { position } = await client.appendToStream(`banking.${aggregate}.v1-core-USD`, event);
    commits.push(position?.commit ?? 0n);
  };
  const checkpointOf = async (subscription: string): Promise<bigint> => {
    const text = (await keys.get(`checkpoint:esdb:${subscription}`)) ?? '{"commit":"0"}';
    return BigInt((JSON.parse(text) as { readonly commit: string }).commit);
  };
  const passed = (): Promise<void> =>
    eventually('both checkpoints have passed the last event', async () => {
      const found = await Promise.all([currencies.name, reactor].map(checkpointOf));
      return found.every((commit) => commit >= (commits.at(-1) ?? 0n));
    });

  // Each process ends after the effect of its last event, before the checkpoint has passed the event.
  for (const [firstName, lastName] of [
    [0, 9],
    [10, 19],
  ] as const) {
    const child = start(String(lastName));
    await child.message(isText('started'));
    for (let name = firstName; name < lastName; name += 1) await create(String(name));
    await passed();
    await create(String(lastName));
    assert.equal(await child.ended, 'SIGKILL');
  }
  const last = start('none');
  await passed();
  assert.equal(await last.kill(), 'SIGKILL');
  const upTo = (end: number, from = 0): number[] =>
    Array.from({ length: end - from + 1 }, (_, index) => from + index);
  const handled = (await readFile(effects, 'utf8')).trim().split('\n').map(Number);
  assert.deepEqual(handled, [...upTo(9), ...upTo(19, 9), 19]);
  assert.deepEqual(JSON.parse((await keys.get(`app:{core}:banking:${aggregate}:v1:USD`)) ?? ''), {
    code: 'USD',
    name: '19',
  });
  assert.deepEqual(await readdir(workspace.folder), ['effects']);
});

// The stack of the naming document, EventStoreDB and Redis alone, as another service sees it: events by the official
// client, keys and checkpoint by a Redis client. EventStoreDB is the stand-in, or the server of MILLRACE_TEST_KURRENTDB.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { KurrentDBClient, jsonEvent } from '@kurrent/kurrentdb-client';
import { createPlatform, defineModule, type Platform } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import { subscription } from '../../src/subscriptions/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { createWorkspace } from '../store/rig.ts';

interface Currency {
  readonly code: string;
  readonly name: string;
}

const given = process.env['MILLRACE_TEST_KURRENTDB'];
// A given server may contain the events of earlier runs.
const aggregate = given === undefined ? 'currency' : `currency${randomUUID().slice(0, 8)}`;

const currencies = projection({
  name: `sub:core-lookup:${aggregate}-projection:v1`,
  readModel: readModel<Currency>({
    bc: 'banking',
    aggregate,
    version: 1,
    indexes: { code: ({ code }) => code },
  }),
  on: { [`${aggregate}.created.v1`]: (_before, { payload }: ProjectedEvent<Currency>) => payload },
});
const reactor = `sub:core-lookup:${aggregate}-mail:v1`;

function banking(mails: string[]) {
  const handler = ({ stream }: { readonly stream: string }): void =>
    void mails.push(stream.slice(-3));
  return defineModule({
    name: 'banking',
    projections: [currencies],
    subscriptions: [
      subscription({ name: reactor, filter: { category: `banking.${aggregate}.v1` }, handler }),
    ],
  });
}

test('EventStoreDB and Redis are a complete deployment: read models, checkpoint and restart', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis({ appendOnly: 'always' });
  await using opened = new AsyncDisposableStack();
  const store = given ?? opened.use(await startStandIn({ preset: '24.10' })).url;
  const keys = new Redis(redis.url);
  opened.defer(() => keys.disconnect());
  const client = KurrentDBClient.connectionString(store);
  opened.defer(() => client.dispose());
  const mails: string[] = [];
  const start = async (): Promise<Platform> => {
    const platform = await createPlatform({
      engines: { store, keys: redis.url },
      modules: [banking(mails)],
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

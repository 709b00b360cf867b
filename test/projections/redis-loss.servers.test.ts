// A Redis that loses its data while the platform runs, and one that is replaced by another server.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { openRedis } from '../../src/engines/redis/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { createPlatform, defineModule, type Platform } from '../../src/platform/index.ts';
import {
  documentsOf,
  projection,
  readModel,
  startProjection,
  type ProjectedEvent,
} from '../../src/projections/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import {
  startSubscription,
  subscription,
  subscriptionAdmin,
  type SubscriptionStorage,
} from '../../src/subscriptions/index.ts';
import { generationsOf } from '../../src/subscriptions/generations.ts';
import { eventually, rejectsWith } from '../../src/testing/assertions.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { createWorkspace, newEvent, streamName } from '../store/rig.ts';

const items = projection({
  name: 'sub:rig:items:v1',
  readModel: readModel<{ readonly events: number }>({ bc: 'rig', aggregate: 'item', version: 1 }),
  on: {
    'item.created.v1': (before, _event: ProjectedEvent) => ({ events: (before?.events ?? 0) + 1 }),
  },
});
const noted = 'sub:rig:noted:v1';
const family = { bc: 'rig', aggregate: 'item' };

/** A module with a projection and with a handler that reports the events that it handles. */
function rig(handled: string[] = []) {
  const handler = ({ eventId }: { readonly eventId: string }): void => void handled.push(eventId);
  return defineModule({
    name: 'rig',
    projections: [items],
    subscriptions: [subscription({ name: noted, filter: { category: 'rig.item.v1' }, handler })],
  });
}

const statusOf = async ({ engines }: Platform): Promise<string | undefined> =>
  (await engines.readModelVersions.list('rig.item'))[0]?.status;

async function appendItems(platform: Platform, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const { position } = await platform.engines.store.append(streamName(id), [newEvent(id)]);
    await platform.waitFor(items, position);
  }
}

test('documents that Redis loses are rebuilt; until then queries and readiness are answered with 503', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const engines = { store, keys: redis.url };
  await using platform = await createPlatform({ engines, modules: [rig()] });
  await platform.start();
  await using api = await startApi(platform, { port: 0 });
  const { secret } = await platform.tokens.create({ name: 'reader', scopes: ['read'] });
  const headers = { authorization: `Bearer ${secret}`, 'x-tenant-id': 'core' };
  const answer = () => fetch(`${api.url}/api/v1/documents/rig/item/a`, { headers });
  await appendItems(platform, 'a', 'b');
  assert.equal((await answer()).status, 200);

  // The rebuild waits as long as the projection is paused.
  await platform.subscriptions.pause(items.name);
  await redis.kill();
  await redis.start();
  await eventually('the loss is found', async () => (await statusOf(platform)) === 'rebuilding');
  await eventually('queries are rejected', async () => (await answer()).status === 503);
  const problem = (await (await answer()).json()) as { readonly code: string };
  assert.equal(problem.code, 'READ_MODEL_REBUILDING');
  const ready = await fetch(`${api.url}/health/ready`);
  assert.equal(ready.status, 503);
  assert.match(await ready.text(), /"read models":.*rebuilding after a loss: rig\.item\.v1/);

  await platform.subscriptions.resume(items.name);
  await eventually('the documents are restored', async () => (await answer()).status === 200);
  assert.equal(await statusOf(platform), 'ready');
  assert.equal((await fetch(`${api.url}/health/ready`)).status, 200);
  const documents = platform.documents(family);
  for (const id of ['a', 'b']) {
    assert.deepEqual((await documents.get('core', id))?.document, { events: 1 });
  }
});

test('documents that FLUSHALL removes are rebuilt, although no connection was lost', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const engines = { store, keys: redis.url };
  await using platform = await createPlatform({ engines, modules: [rig()] });
  await platform.start();
  await appendItems(platform, 'a', 'b');
  await using opened = new AsyncDisposableStack();
  const client = new Redis(redis.url);
  opened.defer(() => client.disconnect());
  const documents = () => client.keys('app:{core}:rig:item:v1:[ab]');
  assert.equal((await documents()).length, 2);
  await client.flushall();
  assert.deepEqual(await documents(), []);
  await eventually('the documents are restored', async () => {
    return (await documents()).length === 2 && (await statusOf(platform)) === 'ready';
  });
});

test('another Redis gets all documents, and the first one gets what it missed', async () => {
  await using workspace = await createWorkspace();
  await using first = await startRedis();
  await using second = await startRedis();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const modules = [rig()];
  const appended: string[] = [];
  for (const [redis, id] of [
    [undefined, 'a'],
    [first, 'b'],
    [second, 'c'],
    [first, 'd'],
  ] as const) {
    await using platform = await createPlatform({ engines: { store, keys: redis?.url }, modules });
    await platform.start();
    await appendItems(platform, id);
    appended.push(id);
    await eventually('the documents are complete', async () => {
      if ((await statusOf(platform)) !== 'ready') return false;
      const documents = platform.documents(family);
      const found = await Promise.all(appended.map((each) => documents.get('core', each)));
      return found.every((each) => JSON.stringify(each?.document) === '{"events":1}');
    });
  }
});

test('a handler whose checkpoint Redis loses stops until an operator says from where it continues', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  const handled: string[] = [];
  await using events = await openSqlite(store);
  const definition = subscription({
    name: noted,
    handler: ({ eventId }) => void handled.push(eventId),
  });
  const tuning = { pollMs: 20, leaseMs: 300 };
  const append = async (id: string) =>
    (await events.store.append(streamName(id), [newEvent(id)])).position;
  const open = async () => {
    const engine = await openRedis(redis.url);
    return { engine, roles: { store: events.store, subscriptions: engine.subscriptions } };
  };
  const first = await open();
  const runner = await startSubscription(first.roles, definition, tuning);
  await append('a');
  const last = await append('b');
  await runner.whenCaughtUp();
  await redis.kill();
  await redis.start();
  await eventually('the running process stops', () =>
    runner.status.failing.some(({ isCheckpointLost }) => isCheckpointLost),
  );
  await append('c');
  await runner.stop();
  await first.engine[Symbol.asyncDispose]();

  // A new process finds no checkpoint, and does not start from the first event either.
  const next = await open();
  await using engine = next.engine;
  await using again = await startSubscription(next.roles, definition, tuning);
  await eventually('the new process stops', () =>
    again.status.failing.some(({ isCheckpointLost }) => isCheckpointLost),
  );
  const admin = subscriptionAdmin(next.roles);
  assert.deepEqual(
    (await admin.list()).map(({ subscription: name, lost }) => [name, lost]),
    [[noted, true]],
  );
  assert.deepEqual(handled, ['a', 'b']);
  await rejectsWith(
    () => engine.subscriptions.checkpoints.load({ subscription: 'sub:rig:other:v1', shard: 0 }),
    'CHECKPOINT_LOST',
  );
  await admin.reset(noted, { to: last, by: 'ada' });
  await again.whenCaughtUp();
  assert.deepEqual(handled, ['a', 'b', 'c']);
});

/** A storage whose process ends at a step of the generation marks: the step is not done, and the call fails. */
function endingAt(
  storage: SubscriptionStorage,
  step: 'after the first mark' | 'before the mark is replaced',
): SubscriptionStorage {
  const { checkpoints } = storage;
  const { marks } = checkpoints;
  assert.ok(marks !== undefined);
  const killed = async (): Promise<never> => {
    throw new Error('killed');
  };
  const create: typeof marks.create = async (key, mark) => {
    await marks.create(key, mark);
    return killed();
  };
  const ending =
    step === 'after the first mark' ? { ...marks, create } : { ...marks, replace: killed };
  return { ...storage, checkpoints: { ...checkpoints, marks: ending } };
}

test('a process that ends after it has stored its first mark, but not recorded it: the next one records it, and handles no event again', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  await using events = await openSqlite(`sqlite:${join(workspace.folder, 'events.db')}`);
  await using engine = await openRedis(redis.url);
  const handled: string[] = [];
  const handler = ({ eventId }: { readonly eventId: string }): void => void handled.push(eventId);
  const definition = subscription({ name: noted, handler });
  const { store } = events;
  await store.append(streamName('a'), [newEvent('a')]);
  const ending = endingAt(engine.subscriptions, 'after the first mark');
  await assert.rejects(startSubscription({ store, subscriptions: ending }, definition), /killed/);
  const stored = await engine.subscriptions.checkpoints.marks?.read(noted);
  assert.ok(stored !== undefined);
  assert.deepEqual([...(await generationsOf(store).refresh()).keys()], []);

  const roles = { store, subscriptions: engine.subscriptions };
  for (const id of ['b', 'c']) {
    await using runner = await startSubscription(roles, definition);
    const { position } = await store.append(streamName(id), [newEvent(id)]);
    await runner.waitFor(position);
    assert.deepEqual(runner.status.failing, []);
    assert.equal((await generationsOf(store).refresh()).get(noted)?.mark, stored);
  }
  assert.deepEqual(handled, ['a', 'b', 'c']);
});

test('an operator whose reset ends before the mark is replaced resets again, and no history is handled', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  await using events = await openSqlite(`sqlite:${join(workspace.folder, 'events.db')}`);
  await using engine = await openRedis(redis.url);
  const handled: string[] = [];
  const handler = ({ eventId }: { readonly eventId: string }): void => void handled.push(eventId);
  const definition = subscription({ name: noted, handler });
  const tuning = { pollMs: 20, leaseMs: 300 };
  const { store } = events;
  const roles = { store, subscriptions: engine.subscriptions };
  {
    await using runner = await startSubscription(roles, definition, tuning);
    await store.append(streamName('a'), [newEvent('a')]);
    await runner.waitFor((await store.append(streamName('b'), [newEvent('b')])).position);
  }
  const last = await store.head();
  await redis.kill();
  await redis.start();
  const ending = endingAt(engine.subscriptions, 'before the mark is replaced');
  const admin = (subscriptions: SubscriptionStorage) => subscriptionAdmin({ store, subscriptions });
  const reset = { to: last, by: 'ada' };
  await eventually('the connection is restored, and the reset ends', async () => {
    try {
      await admin(ending).reset(noted, reset);
      return false;
    } catch (error) {
      return (error as Error).message === 'killed';
    }
  });
  const { mark } = (await generationsOf(store).refresh()).get(noted) ?? {};
  assert.notEqual(await engine.subscriptions.checkpoints.marks?.read(noted), mark);

  // The next process stays stopped: the reset is repeated before it handles an event.
  await using runner = await startSubscription(roles, definition, tuning);
  await eventually('the checkpoint is still lost', () =>
    runner.status.failing.some(({ isCheckpointLost }) => isCheckpointLost),
  );
  const { position } = await store.append(streamName('c'), [newEvent('c')]);
  assert.deepEqual(handled, ['a', 'b']);
  await admin(engine.subscriptions).reset(noted, reset);
  await runner.waitFor(position);
  assert.deepEqual(handled, ['a', 'b', 'c']);
});

test('a restoration that ends before the mark is replaced starts again at the next check', async () => {
  await using workspace = await createWorkspace();
  await using redis = await startRedis();
  await using events = await openSqlite(`sqlite:${join(workspace.folder, 'events.db')}`);
  await using engine = await openRedis(redis.url);
  const { readModels } = engine;
  const { marks } = readModels;
  assert.ok(marks !== undefined);
  const roles = { ...events, readModels };
  const { store } = events;
  {
    await using running = await startProjection(roles, items);
    await running.waitFor((await store.append(streamName('a'), [newEvent('a')])).position);
  }
  await redis.kill();
  await redis.start();
  const replace = async (): Promise<never> => {
    throw new Error('killed');
  };
  const ending = { ...roles, readModels: { ...readModels, marks: { ...marks, replace } } };
  await eventually('the restoration ends', async () => {
    try {
      await using _ = await startProjection(ending, items);
      return false;
    } catch (error) {
      return (error as Error).message === 'killed';
    }
  });
  assert.equal(await marks.read(items.readModel), undefined);

  await using running = await startProjection(roles, items);
  await running.waitFor(await store.head());
  const { mark } = (await generationsOf(store).refresh()).get('rig.item.v1') ?? {};
  assert.equal(await marks.read(items.readModel), mark);
  const documents = documentsOf(readModels, items.readModel);
  assert.deepEqual((await documents.get('core', 'a'))?.document, { events: 1 });
});

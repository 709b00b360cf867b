// A flow over HTTP: access, contents, and unknown flows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineEvent } from '../../contracts/index.ts';
import {
  createPlatform,
  defineModule,
  type Platform,
  type PlatformConfig,
} from '../../platform/index.ts';
import type { TokenScope } from '../../platform/tokens/scopes.ts';
import { saga } from '../../reactors/index.ts';
import { taskType } from '../../tasks/index.ts';
import { until } from '../../testing/support/server/api-rig.ts';
import type { Trace } from '../../traces/create-traces.ts';
import { startApi } from './start-api.ts';

type Ask = (path: string, scope: TokenScope, tenant?: string) => Promise<Response>;

async function withApi(
  work: (api: {
    readonly ask: Ask;
    readonly append: (tenant: string) => Promise<void>;
    readonly platform: Platform;
  }) => Promise<void>,
  config: PlatformConfig = {},
): Promise<void> {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, ...config });
  await platform.start();
  await using server = await startApi(platform, { port: 0 });
  let tokens = 0;
  const send = async (path: string, scope: TokenScope, tenant?: string, init: RequestInit = {}) => {
    const name = `t${(tokens += 1)}`;
    const wanted = { name, scopes: [scope], ...(tenant === undefined ? {} : { tenant }) };
    const { secret } = await platform.tokens.create(wanted);
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${secret}`);
    return fetch(server.url + path, { ...init, headers });
  };
  await work({
    platform,
    ask: (path, scope, tenant) => send(path, scope, tenant),
    async append(tenant) {
      const path = `/api/v1/streams/shop.order.v1-${tenant}-o1/events`;
      const response = await send(path, 'append', tenant, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-correlation-id': 'flow/1' },
        body: JSON.stringify({ events: [{ type: 'order.placed.v1', payload: {} }] }),
      });
      assert.equal(response.status, 201);
    },
  });
}

const path = `/traces/${encodeURIComponent('flow/1')}?waitMs=30000`;

test('returns a recent flow under both paths', async () => {
  await withApi(async ({ ask, append }) => {
    await append('core');
    for (const prefix of ['/admin', '/api/v1/admin']) {
      const response = await ask(prefix + path, 'admin');
      assert.equal(response.status, 200);
      const trace = (await response.json()) as Trace;
      assert.deepEqual([trace.complete, trace.nodes.length], [true, 1]);
      const [node] = trace.nodes;
      assert.equal(node?.kind === 'event' ? node.type : '', 'order.placed.v1');
      assert.doesNotMatch(JSON.stringify(trace), /payload/);
    }
  });
});

test('traces need the scope read, and credentials of a tenant see only the part of their tenant', async () => {
  await withApi(async ({ ask, append }) => {
    await append('core');
    await append('demo');
    const tenantsOf = async (tenant?: string): Promise<string[]> => {
      const { nodes } = (await (await ask(`/admin${path}`, 'read', tenant)).json()) as Trace;
      return nodes.flatMap((node) => (node.kind === 'event' ? [node.tenant] : []));
    };
    assert.deepEqual(await tenantsOf(), ['core', 'demo']);
    assert.deepEqual(await tenantsOf('demo'), ['demo']);
    assert.equal((await ask(`/admin${path}`, 'read', 'other')).status, 404);
    assert.equal((await ask(`/admin${path}`, 'append', 'core')).status, 403);
  });
});

test('responds with 404 to an unknown flow and with 400 to an invalid request', async () => {
  await withApi(async ({ ask }) => {
    assert.equal((await ask('/admin/traces/unknown?waitMs=30000', 'admin')).status, 404);
    assert.equal((await ask('/admin/traces/%00', 'admin')).status, 400);
    assert.equal((await ask('/admin/traces/unknown?waitMs=-1', 'admin')).status, 400);
    assert.equal((await ask(`/admin/traces/${'x'.repeat(1_001)}`, 'admin')).status, 400);
  });
});

test('a flow contains its jobs, messages of topics and waiting sagas, for their tenant only', async () => {
  const placed = defineEvent('order.placed.v1', z.object({}));
  const reminder = saga({
    bc: 'shop',
    name: 'reminder',
    version: 1,
    from: 'start',
    filter: { category: 'shop.order.v1' },
    events: [placed],
    startOn: ['order.placed.v1'],
    correlateBy: ({ aggregate }) => aggregate.id,
    initial: {},
    on: { 'order.placed.v1': () => [{ timer: 'unpaid', afterMs: 3_600_000 }] },
    steps: {},
    timers: { unpaid: () => [] },
  });
  const module = defineModule({ name: 'reminders', sagas: [reminder] });
  await withApi(
    async ({ ask, append, platform }) => {
      await append('core');
      const [first] = await platform.engines.store.readAll({ limit: 1 }).toArray();
      const caused = {
        correlationId: 'flow/1',
        causationId: first?.eventId ?? '',
        tenant: 'core',
      };
      const tasks = await platform.tasks();
      const { id } = await tasks.enqueue({ type: 'email-send', payload: {}, ...caused });
      await tasks.enqueue({ type: 'email-send', payload: {}, tenant: 'core' });
      const bus = await platform.engines.bus();
      const subject = 'gbe.notify.topic.orders';
      await bus.publish({ subject, payload: { message: 'new' }, ...caused });
      await bus.publish({ subject, payload: { message: 'other' } });
      await until(async () => (await platform.engines.sagas.list({})).length === 1);
      const nodesFor = async (tenant?: string) =>
        ((await (await ask(`/admin${path}`, 'read', tenant)).json()) as Trace).nodes;
      const nodes = await nodesFor('core');
      const task = nodes.find((node) => node.kind === 'task');
      const message = nodes.find((node) => node.kind === 'message');
      const waiting = nodes.find((node) => node.kind === 'saga');
      assert.deepEqual([task?.task, task?.state, task?.depth], [id, 'queued', 1]);
      assert.deepEqual([message?.topic, message?.depth], ['orders', 1]);
      assert.deepEqual(
        [waiting?.saga, waiting?.status, waiting?.timers.map(({ timer }) => timer)],
        ['reminder', 'running', ['unpaid']],
      );
      await append('demo');
      const kinds = new Set((await nodesFor('demo')).map(({ kind }) => kind));
      assert.equal(kinds.has('task') || kinds.has('message'), false);
      const own = (await (await ask(`/admin/traces/${id}`, 'read', 'demo')).json()) as Trace;
      assert.equal(own.nodes, undefined);
    },
    { modules: [module], taskTypes: [taskType('email-send')] },
  );
});

test('without a running indexer the response is marked as incomplete', async () => {
  await withApi(
    async ({ ask, append }) => {
      await append('core');
      const response = await ask('/admin/traces/flow%2F1?waitMs=50', 'admin');
      const trace = (await response.json()) as Trace;
      assert.deepEqual([response.status, trace.complete, trace.nodes], [200, false, []]);
    },
    { roles: ['api'] },
  );
});

test('a platform without traces runs no indexer and reports it', async () => {
  await using platform = await createPlatform({ engines: { store: 'memory:' }, traces: false });
  await platform.start();
  assert.deepEqual(await platform.subscriptions.list(), []);
  await assert.rejects(platform.traces.get('flow'), { code: 'NOT_SUPPORTED' });
});

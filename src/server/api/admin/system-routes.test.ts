import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi, until } from '../../../testing/support/server/api-rig.ts';

test('the system describes the modules and the process that responds', async () => {
  await using api = await openApi();
  const reader = await api.token('read');
  const { modules, process: own } = await body<{
    modules: { name: string; aggregates: string[]; projections: string[]; sagas: string[] }[];
    process: { pid: number; node: string; roles: string[] };
  }>(await api.ask('/admin/system', reader));
  assert.deepEqual(modules, [
    {
      name: 'bank',
      aggregates: ['banking.account.v1'],
      projections: ['sub:banking:accounts:v1'],
      sagas: ['sub:banking:review:v1'],
    },
  ]);
  assert.deepEqual([own.pid, own.node], [process.pid, process.versions.node]);
  assert.deepEqual(own.roles, [...api.platform.roles]);
});

test('the doctor checks each engine, without secrets, and keeps its result for a while', async () => {
  await using api = await openApi();
  const reader = await api.token('read');
  interface Examined {
    readonly at: string;
    readonly engines: readonly { readonly url: string; readonly findings: readonly unknown[] }[];
  }
  const first = await body<Examined>(await api.ask('/admin/doctor', reader));
  assert.deepEqual(
    first.engines.map(({ url, findings }) => [url, findings]),
    [
      [
        'memory:',
        [
          {
            check: 'settings',
            level: 'warning',
            detail: 'all data is lost when the process exits',
            remedy: 'Use sqlite:<file> for data that must be kept.',
          },
        ],
      ],
    ],
  );
  assert.deepEqual(await body<Examined>(await api.ask('/admin/doctor', reader)), first);
});

test('a subscription names the owner and the position of each shard', async () => {
  await using api = await openApi();
  await api.fail('core');
  const reader = await api.token('read');
  const { subscription, shards } = await body<{
    subscription: { subscription: string; deadLetters: number };
    shards: { shard: number; owner?: string }[];
  }>(await api.ask('/admin/subscriptions/sub:banking:alarm:v1', reader));
  assert.deepEqual(
    [subscription.subscription, subscription.deadLetters],
    ['sub:banking:alarm:v1', 1],
  );
  assert.deepEqual(
    shards.map(({ shard, owner }) => [shard, typeof owner]),
    shards.map((_, at) => [at, 'string']),
  );
  assert.ok(shards.length > 0);
  assert.equal((await api.ask('/admin/subscriptions/sub:no:such:v1', reader)).status, 404);
});

test('destinations are listed with their undelivered messages, breakers and pauses', async () => {
  await using api = await openApi();
  const operator = await api.token('operate');
  const list = async (): Promise<readonly object[]> =>
    (await body<{ items: object[] }>(await api.ask('/admin/destinations', operator))).items;
  const base = { module: true, breaker: 'closed' };
  assert.deepEqual(await list(), [{ ...base, destination: 'partner', undelivered: 0 }]);
  await api.fail('core');
  const [used, ...others] = (await list()) as {
    readonly perSecond?: number;
    readonly p95Ms?: number;
  }[];
  const { perSecond = 0, p95Ms = -1, ...rest } = used ?? {};
  assert.deepEqual([rest, others], [{ ...base, destination: 'partner:x', undelivered: 1 }, []]);
  assert.ok(perSecond > 0 && p95Ms >= 0);
  await api.post('/admin/outbox/pause', { destination: 'partner:x' }, operator);
  const [paused] = (await list()) as { readonly pausedBy?: string }[];
  assert.match(paused?.pausedBy ?? '', /^t\d+$/);
});

test('a test message goes through the outbox, has a trace, and is audited', async () => {
  await using api = await openApi();
  const operator = await api.token('operate');
  const send = (destination: string, token: string): Promise<Response> =>
    api.post('/admin/destinations/test', { destination }, token);
  const { id, correlationId } = await body<{ id: string; correlationId: string }>(
    await send('partner:x', operator),
  );
  const { outbox } = api.platform.engines;
  await until(async () => (await outbox?.find(id))?.status === 'SENT');
  const sent = await outbox?.find(id);
  assert.deepEqual(
    [sent?.eventType, sent?.payload['test'], sent?.maxAttempts],
    ['millrace.test.v1', true, 1],
  );
  const { nodes } = await body<{ nodes: { kind: string; message?: string }[] }>(
    await api.ask(`/admin/traces/${correlationId}`, operator),
  );
  assert.deepEqual(
    nodes.map(({ kind, message }) => [kind, message]),
    [
      ['event', undefined],
      ['delivery', id],
    ],
  );
  const { items } = await body<{ items: { action: string; target: string; outcome: string }[] }>(
    await api.ask('/admin/audit?action=destination.test', await api.token('admin')),
  );
  assert.deepEqual(
    items.map(({ action, target, outcome }) => [action, target, outcome]),
    [['destination.test', 'partner:x', 'done']],
  );

  // No module sends to it: the message ends with the reason and is not retried.
  const unknown = await body<{ id: string }>(await send('pager:x', operator));
  await until(async () => (await outbox?.find(unknown.id))?.status === 'DEAD');
  assert.match((await outbox?.find(unknown.id))?.lastError ?? '', /unknown destination 'pager:x'/);
  assert.equal((await send('partner:x', await api.token('read'))).status, 403);
  assert.equal((await send('partner:x', await api.token('operate', 'core'))).status, 403);
});

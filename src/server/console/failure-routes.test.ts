import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Terminal } from '../../subscriptions/index.ts';
import type { ApiRequest, ReaderMemory } from '../../platform/modules/route.ts';
import { rejectsWith } from '../../testing/assertions.ts';
import { body, openApi, until } from '../../testing/support/server/api-rig.ts';
import { failureCause } from '../../foundation/failure-cause.ts';
import { groupFailures } from '../../platform/failures/failures.ts';
import type { Failure } from '../../platform/failures/failure-sources.ts';

const failureOf = (error: string) => {
  const failure = { source: 'dead-letter', where: 'sub:shop:mail:v1', error } as const;
  return { ...failure, cause: failureCause(failure) };
};

test('5,000 failures of 3 causes are 3 groups, the latest first', () => {
  const failures = Array.from({ length: 5_000 }, (_, at): Failure => ({
    ...failureOf(['no route 7', 'bad "name"', 'timeout'][at % 3] ?? ''),
    id: String(at),
    type: 'order.placed.v1',
    at: new Date(at * 1_000).toISOString(),
    attempts: 1,
    tenant: at % 2 === 0 ? 'core' : 'other',
    isFinal: true,
    isParked: at < 3,
  }));
  const groups = groupFailures(failures, 5_000_000);
  assert.deepEqual(
    groups.map(({ title, count, parked }) => [title, count, parked]),
    [
      ['bad ‹text›', 1_667, 1],
      ['no route ‹n›', 1_667, 1],
      ['timeout', 1_666, 1],
    ],
  );
  assert.deepEqual(groups[0]?.tenants, ['core', 'other']);
  for (const { count, buckets } of groups) {
    assert.equal(
      buckets.reduce((sum, each) => sum + each, 0),
      count,
    );
  }
});

interface Groups {
  readonly items: readonly {
    readonly fingerprint: string;
    readonly source: string;
    readonly where: string;
    readonly title: string;
    readonly state: string;
    readonly decision?: { readonly note: string; readonly by: string };
  }[];
  readonly isComplete: boolean;
}

interface Detail {
  readonly items: readonly {
    readonly correlationId: string;
    readonly cause: { readonly name: string; readonly stack: string; readonly fingerprint: string };
  }[];
}

test('a group lists its failures with their stack, and a tenant sees only its own', async () => {
  await using api = await openApi();
  await api.fail('core', 'flow-1');
  const operator = await api.token('operate');
  const found = await body<Groups>(await api.ask('/admin/failures', operator));
  assert.deepEqual(found.items.map((each) => each.source).toSorted(), [
    'dead-letter',
    'delivery',
    'saga',
  ]);
  assert.equal(found.isComplete, true);
  for (const { fingerprint, source, where, title } of found.items) {
    const answer = await api.ask(`/admin/failures/${fingerprint}`, operator);
    const { items } = await body<Detail>(answer);
    assert.deepEqual(
      items.map(({ cause }) => cause.fingerprint),
      [fingerprint],
    );
    if (source === 'saga') {
      assert.match(title, /^A handler of the saga failed/);
      // Stored decisions on the cause have the fingerprint of the code.
      const failure = { source, where, error: 'handler-failed' };
      assert.equal(fingerprint, failureCause(failure).fingerprint);
      continue;
    }
    assert.deepEqual([items[0]?.correlationId, items[0]?.cause.name], ['flow-1', 'Terminal']);
    assert.match(items[0]?.cause.stack ?? '', /at failOn \(.*api-rig\.ts:\d+:\d+\)/);
  }
  const [message] = (await api.platform.engines.outbox?.list({ status: 'DEAD' })) ?? [];
  const path = `/admin/outbox/${message?.id}/attempts`;
  const { items: attempts } = await body<{ items: readonly { outcome: string; error: string }[] }>(
    await api.ask(path, operator),
  );
  assert.deepEqual(
    attempts.map(({ outcome, error }) => [outcome, error]),
    [['dead', 'out of order']],
  );
  assert.equal((await api.ask(path, await api.token('operate', 'other'))).status, 404);
  const other = await body<Groups>(
    await api.ask('/admin/failures', await api.token('operate', 'other')),
  );
  assert.deepEqual(other.items, []);
  assert.equal((await api.ask('/admin/failures/0123456789ab', operator)).status, 404);
});

test('a resolved or ignored cause is hidden until it happens again, and keeps its note', async () => {
  await using api = await openApi();
  await api.fail('core');
  const operator = await api.token('operate');
  const list = async (query = '') =>
    (await body<Groups>(await api.ask(`/admin/failures?source=delivery${query}`, operator))).items;
  const [group] = await list();
  const path = `/admin/failures/${group?.fingerprint}/decision`;
  const decide = (content: object, token = operator) => api.post(path, content, token);
  assert.equal((await decide({ note: 'asked Eve' })).status, 200);
  assert.deepEqual((await list())[0]?.decision?.note, 'asked Eve');
  assert.equal((await decide({ state: 'resolved' })).status, 200);
  assert.deepEqual(await list(), []);
  assert.deepEqual((await list('&state=resolved'))[0]?.decision?.note, 'asked Eve');
  assert.equal((await list('&state=all')).length, 1);
  const { outbox } = api.platform.engines;
  await outbox?.replay({});
  await until(async () => (await list())[0]?.state === 'open');
  assert.deepEqual((await list())[0]?.decision?.note, 'asked Eve');
  await decide({ state: 'ignored' });
  assert.deepEqual(await list(), []);
  await decide({ state: 'open' });
  assert.equal((await list()).length, 1);
  assert.equal((await decide({ state: 'closed' })).status, 400);
  const bound = await api.token('operate', 'core');
  assert.equal((await decide({ state: 'resolved' }, bound)).status, 403);
});

test('failures are found by their place, whatever its kind', async () => {
  await using api = await openApi();
  await api.fail('core');
  const operator = await api.token('operate');
  for (const [where, sources] of [
    ['sub:banking:alarm:v1', ['dead-letter']],
    ['partner:x', ['delivery']],
    ['banking.review.v1', ['saga']],
    ['<b> no such place', []],
  ] as const) {
    const query = new URLSearchParams({ where });
    const { items } = await body<Groups>(
      await api.ask(`/admin/failures?${query.toString()}`, operator),
    );
    assert.deepEqual(
      items.map(({ source }) => source),
      sources,
      where,
    );
  }
});

test('dead letters of the bus are failures that can be replayed and discarded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-failures-'));
  try {
    const bus = `sqlite:${join(folder, 'bus.db')}`;
    await using api = await openApi({}, { store: 'memory:', bus });
    const messages = await api.platform.engines.bus();
    const definition = { group: 'mails', subject: 'gbe.notify.topic.a' };
    let isFixed = false;
    const handled: unknown[] = [];
    await using consumer = await messages.consume(definition, async ({ payload }) => {
      if (!isFixed) throw new Terminal('no route');
      handled.push(payload);
    });
    for (const payload of [1, 2]) await messages.publish({ subject: definition.subject, payload });
    const operator = await api.token('operate');
    const list = async () => (await body<Groups>(await api.ask('/admin/failures', operator))).items;
    await until(async () => (await messages.deadLetters('mails')).length === 2);
    const [group, ...more] = await list();
    assert.deepEqual([group?.source, group?.where, more], ['bus', 'mails', []]);
    isFixed = true;
    const run = async (action: string, matched: number, filter: object) => {
      const order = { action, filter, matched, reason: 'a test', until: new Date().toISOString() };
      assert.equal((await api.post('/admin/bulk', order, operator)).status, 202);
    };
    const [first] = await messages.deadLetters('mails');
    await run('replay', 1, { source: 'bus', ids: [`mails/${first?.sequence}`] });
    await until(() => handled.length === 1);
    await run('discard', 1, { fingerprint: group?.fingerprint });
    await until(async () => (await messages.deadLetters('mails')).length === 0);
    assert.deepEqual(handled, [1]);
    await consumer.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every route that reads failures stops when its caller leaves', async () => {
  await using api = await openApi();
  await api.fail('core');
  const principal = { kind: 'token', name: 'ada', scopes: ['admin'] } as const;
  const filter = { source: 'delivery' };
  const order = { action: 'replay', filter, matched: 1, until: new Date().toISOString() };
  for (const [name, params, content] of [
    ['GET /admin/failures', {}],
    ['GET /admin/failures/{fingerprint}', { fingerprint: '0123456789ab' }],
    ['GET /admin/resolve/{id}', { id: '0123456789ab' }],
    ['POST /admin/bulk/preview', {}, order],
    ['POST /admin/bulk', {}, order],
  ] as const) {
    const route = api.server.routes.find(({ method, path }) => `${method} ${path}` === name);
    const leaving = new AbortController();
    const memory: ReaderMemory = {
      load(work) {
        const loaded = work();
        leaving.abort();
        return loaded;
      },
      page: () => assert.fail('no page'),
      hold: () => undefined,
    };
    const caller = { principal, memory, headers: {}, requestId: 'r1', address: '127.0.0.1' };
    const inputs = { params, query: {}, body: content };
    const request: ApiRequest = { ...caller, ...inputs, signal: leaving.signal };
    await rejectsWith(async () => route?.handle(request), 'ABORTED');
  }
});

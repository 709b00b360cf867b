import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi, until } from '../../testing/support/server/api-rig.ts';

interface Preview {
  readonly matched: number;
  readonly until: string;
  readonly samples: readonly { readonly source: string; readonly id: string }[];
}

interface Bulk {
  readonly id: string;
  readonly state: string;
  readonly matched: number;
  readonly done: number;
  readonly unchanged: number;
}

interface Items {
  readonly items: readonly {
    readonly source: string;
    readonly id: string;
    readonly outcome: string;
  }[];
}

test('a bulk action starts with the number that was shown, and replays each kind of failure', async () => {
  await using api = await openApi();
  await api.fail('core');
  const operator = await api.token('operate');
  const post = (path: string, content: object) => api.post(path, content, operator);
  const request = { action: 'replay', filter: {} };
  const preview = await body<Preview>(await post('/admin/bulk/preview', request));
  assert.equal(preview.matched, 3);
  const sources = preview.samples.map(({ source }) => source).toSorted();
  assert.deepEqual(sources, ['dead-letter', 'delivery', 'saga']);

  const order = { ...request, until: preview.until };
  const refused = await post('/admin/bulk', { ...order, matched: 2 });
  assert.equal(refused.status, 409);
  const problem = await body<{ code: string; details: object }>(refused);
  assert.deepEqual([problem.code, problem.details], ['BULK_COUNT_CHANGED', { matched: 3 }]);

  api.faults.isFixed = true;
  const answer = await post('/admin/bulk', { ...order, matched: 3 });
  assert.equal(answer.status, 202);
  const { id } = await body<Bulk>(answer);
  const now = async () => body<Bulk>(await api.ask(`/admin/bulk/${id}`, operator));
  await until(async () => (await now()).state === 'completed');
  const { done, unchanged } = await now();
  assert.deepEqual([done, unchanged], [3, 0]);
  const { items } = await body<Items>(await api.ask(`/admin/bulk/${id}/items`, operator));
  assert.deepEqual(
    items.map(({ source, outcome }) => `${source} ${outcome}`).toSorted(),
    sources.map((source) => `${source} done`),
  );
  const { items: left } = await body<{ items: readonly unknown[] }>(
    await api.ask('/admin/failures', operator),
  );
  assert.deepEqual(left, []);
  const { outbox, sagas } = api.platform.engines;
  await until(async () => (await outbox?.counts())?.SENT === 3);
  await until(async () => (await sagas.list({ status: 'parked' })).length === 0);

  const audit = await body<{ items: readonly { action: string; target: string }[] }>(
    await api.ask('/admin/audit', await api.token('admin')),
  );
  assert.deepEqual(
    audit.items.filter(({ action }) => action.startsWith('bulk')).map(({ target }) => target),
    ['{"matched":3}', '{"matched":2}'],
  );
});

test('a bulk action leaves what fails later, and what another tenant owns', async () => {
  await using api = await openApi();
  await api.fail('core');
  await api.fail('other');
  const own = await api.token('operate', 'other');
  const request = { action: 'replay', filter: { source: 'delivery' } };
  const preview = await body<Preview>(await api.post('/admin/bulk/preview', request, own));
  assert.equal(preview.matched, 1);
  const late = { ...request, until: new Date(0).toISOString(), matched: 1 };
  assert.equal((await api.post('/admin/bulk', late, own)).status, 409);
  const foreign = { ...request, filter: { tenant: 'core' } };
  assert.equal((await api.post('/admin/bulk/preview', foreign, own)).status, 403);
  const order = { ...request, until: preview.until, matched: 1 };
  const { id } = await body<Bulk>(await api.post('/admin/bulk', order, own));
  const core = await api.token('operate', 'core');
  assert.equal((await api.ask(`/admin/bulk/${id}`, core)).status, 404);
  const now = async () => body<Bulk>(await api.ask(`/admin/bulk/${id}`, own));
  await until(async () => (await now()).state === 'completed');
  // It failed again, so it is a failure after the moment of the action.
  const { outbox } = api.platform.engines;
  await until(async () => (await outbox?.counts())?.DEAD === 2);
  const logs = (await outbox?.list({ status: 'DEAD' })) ?? [];
  const attempts = new Map<string | undefined, number | undefined>();
  for (const { id: each, tenantId } of logs)
    attempts.set(tenantId, (await outbox?.attemptLog(each))?.length);
  assert.deepEqual(Object.fromEntries(attempts), { core: 1, other: 2 });
});

test('a bulk action can be cancelled before it starts, and to discard needs a reason', async () => {
  await using api = await openApi();
  await api.fail('core');
  const operator = await api.token('operate');
  const tasks = await api.platform.tasks();
  await tasks.pause('millrace-bulk');
  const request = { action: 'discard', filter: {} };
  const preview = await body<Preview>(await api.post('/admin/bulk/preview', request, operator));
  // Sagas cannot be discarded.
  const sources = preview.samples.map(({ source }) => source);
  assert.deepEqual(sources.toSorted(), ['dead-letter', 'delivery']);
  const order = { ...request, until: preview.until, matched: 2 };
  assert.equal((await api.post('/admin/bulk', order, operator)).status, 400);
  const started = await api.post('/admin/bulk', { ...order, reason: 'a test' }, operator);
  const { id } = await body<Bulk>(started);
  const cancelled = await body<Bulk>(await api.post(`/admin/bulk/${id}/cancel`, {}, operator));
  assert.deepEqual([cancelled.state, cancelled.done], ['cancelled', 0]);
  // Its order is of an earlier moment, and its numbers were shown then.
  assert.equal((await api.post(`/admin/jobs/${id}/retry`, {}, operator)).status, 400);
  const all = await api.post('/admin/jobs/retry', { type: 'millrace-bulk' }, operator);
  assert.deepEqual(await body(all), { changed: 0, skipped: 1 });
  assert.equal((await tasks.get(id))?.state, 'cancelled');
  await tasks.resume('millrace-bulk');
  const again = await api.post('/admin/bulk', { ...order, reason: 'a test' }, operator);
  const { id: second } = await body<Bulk>(again);
  const { deadLetters } = api.platform.engines.subscriptions;
  await until(async () => (await deadLetters.list({ status: 'discarded' })).length === 1);
  const [letter] = await deadLetters.list({});
  assert.equal(letter?.discardReason, 'a test');
  await until(async () => (await api.platform.engines.outbox?.counts())?.DISCARDED === 1);
  const { items } = await body<{ items: readonly Bulk[] }>(await api.ask('/admin/bulk', operator));
  assert.deepEqual(items.map((each) => each.id).toSorted(), [id, second].toSorted());
});

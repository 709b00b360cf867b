import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toPosition } from '../../store/position.ts';
import { body, openApi } from '../../testing/support/server/api-rig.ts';
import { seriesOf } from './overview.ts';

test('rates are the events between two samples, and other numbers stay as they were', () => {
  const samples = [
    { atMs: 0, head: toPosition(10) },
    { atMs: 2_000, head: toPosition(14) },
    { atMs: 3_000, head: toPosition(14), failures: 2, outbox: 1 },
  ];
  assert.deepEqual(seriesOf(samples, true), [
    { at: '1970-01-01T00:00:02.000Z', eventsPerSecond: 2 },
    { at: '1970-01-01T00:00:03.000Z', eventsPerSecond: 0, failures: 2, outbox: 1 },
  ]);
  assert.deepEqual(seriesOf(samples.slice(0, 2), false), [{ at: '1970-01-01T00:00:02.000Z' }]);
});

test('the overview counts the same failures as the inbox, for all tenants only', async () => {
  await using api = await openApi();
  await api.fail('core');
  interface Overview {
    readonly subscriptions: readonly { subscription: string; deadLetters: number }[];
    readonly outbox: { readonly counts: { readonly DEAD: number } };
    readonly jobs: object;
    readonly failures: object;
    readonly series: readonly { readonly failures?: number }[];
  }
  const overview = await body<Overview>(await api.ask('/admin/overview', await api.token('read')));
  const alarm = overview.subscriptions.find((each) => each.subscription === 'sub:banking:alarm:v1');
  assert.equal(alarm?.deadLetters, 1);
  assert.equal(overview.outbox.counts.DEAD, 1);
  // The inbox has the same number.
  assert.deepEqual(overview.failures, {
    'dead-letter': 1,
    delivery: 1,
    job: 0,
    bus: 0,
    saga: 1,
  });
  const inbox = await body<{ looked: number }>(
    await api.ask('/admin/failures', await api.token('read')),
  );
  assert.deepEqual([overview.series.at(-1)?.failures, inbox.looked], [3, 3]);
  assert.deepEqual(overview.jobs, { waiting: 0, running: 0, failed: 0, done: 0 });
  const other = await api.ask('/admin/overview', await api.token('read', 'core'));
  assert.equal(other.status, 403);
});

test('an id is found as what it is, within the tenant of the caller', async () => {
  await using api = await openApi();
  await api.fail('core', 'flow-1');
  const { subscriptions, outbox, store } = api.platform.engines;
  const [letter] = await subscriptions.deadLetters.list({});
  const [message] = (await outbox?.list({ status: 'DEAD' })) ?? [];
  const [event] = await store.readAll({ limit: 1 }).toArray();
  const job = await api.post(
    '/api/v1/jobs',
    { type: 'report-gen', payload: {} },
    await api.token('append', 'core'),
  );
  const { id: jobId } = await body<{ id: string }>(job);
  const reader = await api.token('read');
  const kinds = async (id: string, token: string): Promise<readonly string[]> => {
    const answer = await api.ask(`/admin/resolve/${encodeURIComponent(id)}`, token);
    return (await body<{ items: { kind: string }[] }>(answer)).items.map(({ kind }) => kind);
  };
  assert.deepEqual(await kinds('flow-1', reader), ['trace']);
  assert.deepEqual(await kinds(event?.stream ?? '', reader), ['stream']);
  assert.deepEqual(await kinds(event?.eventId ?? '', reader), ['event']);
  assert.deepEqual(await kinds(letter?.id ?? '', reader), ['dead-letter']);
  assert.deepEqual(await kinds(message?.id ?? '', reader), ['delivery']);
  assert.deepEqual(await kinds(jobId, reader), ['job']);
  assert.deepEqual(await kinds('nothing', reader), []);
  const other = await api.token('admin', 'other');
  for (const id of ['flow-1', event?.stream, event?.eventId, letter?.id, message?.id, jobId]) {
    assert.deepEqual(await kinds(id ?? '', other), [], `${id}`);
  }
});

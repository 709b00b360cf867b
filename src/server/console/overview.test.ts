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

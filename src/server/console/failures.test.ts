import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi } from '../../testing/support/server/api-rig.ts';
import { causeOf } from './failure-cause.ts';
import { groupFailures, type Failure } from './failures.ts';

const source = { source: 'delivery', where: 'webhook:partner' };

test('failures that differ in ids, numbers, times and quoted text have one cause', () => {
  const pairs = [
    ['no such mailbox "ada@example.com"', 'no such mailbox "bob@example.com"'],
    ['timed out after 5000 ms', 'timed out after 12 ms'],
    [
      'unknown order 0198c1d2-1111-7abc-8def-0123456789ab',
      'unknown order 0198c1d2-2222-7abc-8def-0123456789ab',
    ],
    ['late since 2026-11-18T10:00:00.000Z', 'late since 2026-11-17T09:12:00.1Z'],
    ['broken\n  at one.ts:1', 'broken\n  at two.ts:2'],
  ] as const;
  for (const [one, other] of pairs) {
    assert.deepEqual(causeOf({ ...source, error: one }), causeOf({ ...source, error: other }));
  }
  assert.equal(causeOf({ ...source, error: 'took 12 ms' }).title, 'took ‹n› ms');
});

test('another status, message, place or source is another cause', () => {
  const causes = [
    { ...source, error: 'HTTP 503 from 10.0.0.1' },
    { ...source, error: 'HTTP 404 from 10.0.0.1' },
    { ...source, error: 'connection refused' },
    { ...source, where: 'webhook:other', error: 'connection refused' },
    { ...source, source: 'job', error: 'connection refused' },
  ].map((each) => causeOf(each).fingerprint);
  assert.equal(new Set(causes).size, 5);
  assert.equal(
    causeOf({ ...source, error: 'HTTP 503 from 10.0.0.1' }).title.slice(0, 8),
    'HTTP 503',
  );
});

test('5,000 failures of 3 causes are 3 groups, the latest first', () => {
  const failures = Array.from({ length: 5_000 }, (_, at): Failure => ({
    source: 'dead-letter',
    id: String(at),
    where: 'sub:shop:mail:v1',
    type: 'order.placed.v1',
    error: ['no route 7', 'bad "name"', 'timeout'][at % 3] ?? '',
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

test('a group lists its failures, and a tenant sees only its own', async () => {
  await using api = await openApi();
  await api.fail('core', 'flow-1');
  interface Groups {
    readonly items: readonly { readonly fingerprint: string; readonly source: string }[];
    readonly isComplete: boolean;
  }
  const operator = await api.token('operate');
  const found = await body<Groups>(await api.ask('/admin/failures', operator));
  assert.deepEqual(found.items.map((each) => each.source).toSorted(), ['dead-letter', 'delivery']);
  assert.equal(found.isComplete, true);
  for (const { fingerprint } of found.items) {
    const answer = await api.ask(`/admin/failures/${fingerprint}`, operator);
    const { items, ids } = await body<{
      items: { id: string; correlationId: string }[];
      ids: string[];
    }>(answer);
    assert.deepEqual(
      items.map(({ id }) => id),
      ids,
    );
    assert.deepEqual(
      items.map(({ correlationId }) => correlationId),
      ['flow-1'],
    );
  }
  const other = await body<Groups>(
    await api.ask('/admin/failures', await api.token('operate', 'other')),
  );
  assert.deepEqual(other.items, []);
  assert.equal((await api.ask('/admin/failures/0123456789ab', operator)).status, 404);
});

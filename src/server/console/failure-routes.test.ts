import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi } from '../../testing/support/server/api-rig.ts';
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
      items: {
        id: string;
        correlationId: string;
        cause: { name: string; stack: string; fingerprint: string };
      }[];
      ids: string[];
    }>(answer);
    assert.deepEqual(
      items.map(({ id }) => id),
      ids,
    );
    assert.deepEqual(
      items.map(({ correlationId, cause }) => [correlationId, cause.name, cause.fingerprint]),
      [['flow-1', 'Terminal', fingerprint]],
    );
    assert.match(items[0]?.cause.stack ?? '', /at failOn \(.*api-rig\.ts:\d+:\d+\)/);
  }
  const other = await body<Groups>(
    await api.ask('/admin/failures', await api.token('operate', 'other')),
  );
  assert.deepEqual(other.items, []);
  assert.equal((await api.ask('/admin/failures/0123456789ab', operator)).status, 404);
});

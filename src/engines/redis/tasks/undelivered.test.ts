import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimRequest } from '../../../tasks/task-engine.ts';
import type { StoredTask } from '../../../tasks/task-job.ts';
import { createUndeliveredTasks } from './undelivered.ts';

const job = (id: string, type: string, worker: string): StoredTask =>
  ({ head: { id, type, worker }, fields: {} }) as unknown as StoredTask;

function request(
  worker: string,
  types: Readonly<Record<string, number>>,
  limit = 10,
): ClaimRequest {
  const rules = Object.entries(types).map(([type, most]) => ({
    type,
    limit: most,
    deadlineAfterMs: 0,
    rate: undefined,
    keyLimit: undefined,
  }));
  return { worker, aliveUntilMs: 0, rules, limit, nowMs: 0 };
}

test('returns the jobs of a worker once, within its limits', () => {
  const undelivered = createUndeliveredTasks();
  undelivered.add([job('1', 'a', 'w'), job('2', 'a', 'w'), job('3', 'b', 'w'), job('4', 'a', 'v')]);
  const idsOf = (claim: ClaimRequest): string[] =>
    undelivered.takeFor(claim).map(({ head }) => head.id);
  assert.deepEqual(idsOf(request('w', { a: 1 })), ['1']);
  assert.deepEqual(idsOf(request('w', { a: 5, b: 5 }, 1)), ['2']);
  assert.deepEqual(idsOf(request('v', { b: 5 })), []);
  assert.deepEqual(idsOf(request('w', { a: 5, b: 5 })), ['3']);
  assert.deepEqual(idsOf(request('v', { a: 5 })), ['4']);
  assert.deepEqual(idsOf(request('v', { a: 5 })), []);
});

test('drops the oldest jobs if their worker does not return', () => {
  const undelivered = createUndeliveredTasks();
  for (let n = 0; n < 1_200; n += 1) undelivered.add([job(String(n), 'a', 'absent')]);
  const [first, ...rest] = undelivered.takeFor(request('absent', { a: 5_000 }, 5_000));
  assert.deepEqual([first?.head.id, rest.length], ['200', 999]);
});

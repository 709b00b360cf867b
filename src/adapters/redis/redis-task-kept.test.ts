import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimRequest } from '../../tasks/task-engine.ts';
import type { StoredTask } from '../../tasks/task-job.ts';
import { createKeptTasks } from './redis-task-kept.ts';

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
    mayBeHanded: true,
  }));
  return { worker, aliveUntilMs: 0, rules, limit, nowMs: 0 };
}

test('a worker gets what is kept for it, once, as far as it has room', () => {
  const kept = createKeptTasks();
  kept.keep([job('1', 'a', 'w'), job('2', 'a', 'w'), job('3', 'b', 'w'), job('4', 'a', 'v')]);
  const idsOf = (asked: ClaimRequest): string[] => kept.takeFor(asked).map(({ head }) => head.id);
  assert.deepEqual(idsOf(request('w', { a: 1 })), ['1']);
  assert.deepEqual(idsOf(request('w', { a: 5, b: 5 }, 1)), ['2']);
  assert.deepEqual(idsOf(request('v', { b: 5 })), []);
  assert.deepEqual(idsOf(request('w', { a: 5, b: 5 })), ['3']);
  assert.deepEqual(idsOf(request('v', { a: 5 })), ['4']);
  assert.deepEqual(idsOf(request('v', { a: 5 })), []);
});

test('the oldest go when nobody comes for them', () => {
  const kept = createKeptTasks();
  for (let n = 0; n < 1_200; n += 1) kept.keep([job(String(n), 'a', 'gone')]);
  const [first, ...rest] = kept.takeFor(request('gone', { a: 5_000 }, 5_000));
  assert.deepEqual([first?.head.id, rest.length], ['200', 999]);
});

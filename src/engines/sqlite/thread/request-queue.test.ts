import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WriterRequest } from './protocol.ts';
import { createRequestQueue, foregroundGroupsMax } from './request-queue.ts';

let ids = 0;
function append(): WriterRequest {
  ids += 1;
  return { id: ids, operation: 'store.append', writes: [], nowMs: 0 };
}
function tidy(): WriterRequest {
  ids += 1;
  return { id: ids, operation: 'tasks.tidy', nowMs: 0 };
}

test('all waiting requests share the next commit, and housekeeping follows one request per commit', () => {
  const queue = createRequestQueue();
  const [a, b, c, d] = [append(), append(), tidy(), tidy()];
  for (const request of [c, a, d, b]) queue.add(request);
  assert.equal(queue.size, 4);
  assert.equal(queue.foreground, 2);
  const groups = [queue.next(), queue.next(), queue.next(), queue.next()];
  assert.deepEqual(groups, [[a, b], [c], [d], []]);
  assert.equal(queue.size, 0);
});

test('housekeeping gets one commit after a fixed number of others, however many requests wait', () => {
  const queue = createRequestQueue();
  const pieces = [tidy(), tidy(), tidy()];
  for (const piece of pieces) queue.add(piece);
  const turns: number[] = [];
  for (let commit = 0; turns.length < pieces.length; commit += 1) {
    queue.add(append());
    const [first] = queue.next();
    if (first !== undefined && 'operation' in first && first.operation === 'tasks.tidy') {
      turns.push(commit);
      assert.equal(first, pieces[turns.length - 1]);
    }
  }
  const every = foregroundGroupsMax + 1;
  assert.deepEqual(turns, [every - 1, 2 * every - 1, 3 * every - 1]);
});

test('commits without waiting housekeeping do not count', () => {
  const queue = createRequestQueue();
  for (let commit = 0; commit < 2 * foregroundGroupsMax; commit += 1) {
    queue.add(append());
    queue.next();
  }
  const [piece, request] = [tidy(), append()];
  queue.add(piece);
  queue.add(request);
  assert.deepEqual([queue.next(), queue.next()], [[request], [piece]]);
});

test('a request is housekeeping only if all of its statements are', () => {
  const queue = createRequestQueue();
  const sweep = { sql: 'delete from x', values: [], isHousekeeping: true };
  const update = { sql: 'update x set y = 1', values: [] };
  const requests = [[sweep], [sweep, update], [update]].map((statements, id) => ({
    id,
    operation: 'sql.run' as const,
    statements,
  }));
  for (const request of requests) queue.add(request);
  assert.deepEqual(
    [queue.next(), queue.next()].map((group) => group.map(({ id }) => id)),
    [[1, 2], [0]],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIds } from '../../../foundation/ids.ts';
import { fakeClock } from '../../../testing/fake-clock.ts';
import { isPreferredWorker } from './choice.ts';

test('each job has exactly one preferred worker, and each worker about as many jobs', () => {
  const ids = createIds({ clock: fakeClock() });
  const workers = ['w-1', 'w-2', 'w-3', 'w-4'];
  const firsts = new Map<string, number>();
  for (let n = 0; n < 4_000; n += 1) {
    const id = `email-send.${ids.next()}`;
    const first = workers.filter((worker) =>
      isPreferredWorker(
        worker,
        id,
        workers.filter((each) => each !== worker),
      ),
    );
    assert.equal(first.length, 1);
    firsts.set(first[0] ?? '', (firsts.get(first[0] ?? '') ?? 0) + 1);
  }
  for (const worker of workers) assert.ok((firsts.get(worker) ?? 0) > 800, worker);
});

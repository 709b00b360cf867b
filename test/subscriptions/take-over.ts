// One owner, one that stands by: how long the events wait after the owner was killed.

import assert from 'node:assert/strict';
import { inTime, newEvent, streamName, until } from '../store/rig.ts';
import { says, startWorker, type Rigged, type WorkerPlan } from './kill-workers.ts';

/** What a busy machine may take on top of the lease. */
const slackMs = 30_000;

export async function takeOver(plan: WorkerPlan, { store, effects }: Rigged): Promise<void> {
  const single = { ...plan, shards: 1, leaseMs: 3_000 };
  const isDone = (eventId: string) => async (): Promise<boolean> =>
    (await effects()).some((effect) => effect.eventId === eventId);
  await using owner = startWorker(single, 'owner', 1);
  await inTime('it owns the shard', owner.message(says('owns')));
  await using standby = startWorker(single, 'standby', 2);
  await inTime('another one stands by', standby.message(says('started')));
  const payload = { poison: false };
  await store.append(streamName(1), [newEvent('before', { payload })]);
  await until('the owner works', isDone('before'));
  await owner.kill('SIGKILL');
  const killedAt = performance.now();
  await store.append(streamName(1), [newEvent('after', { payload })]);
  await until('the other one works', isDone('after'));
  const tookMs = performance.now() - killedAt;
  assert.ok(tookMs < single.leaseMs + slackMs, `it took ${tookMs.toFixed(0)} ms`);
  assert.deepEqual(
    (await effects()).map(({ eventId, worker }) => [eventId, worker]),
    [
      ['before', 'owner'],
      ['after', 'standby'],
    ],
  );
}

// A standby worker takes over when the lease of the killed owner expires.

import assert from 'node:assert/strict';
import { inTime, newEvent, streamName, until } from '../store/rig.ts';
import { says, startWorker, type Rigged, type WorkerPlan } from './kill-workers.ts';

export async function takeOver(plan: WorkerPlan, { store, effects }: Rigged): Promise<void> {
  const single = { ...plan, shards: 1, leaseMs: 3_000 };
  const isDone = (eventId: string) => async (): Promise<boolean> =>
    (await effects()).some((effect) => effect.eventId === eventId);
  await using owner = startWorker(single, 'owner', 1);
  await inTime('the owner has the shard', owner.message(says('owns')));
  await using standby = startWorker(single, 'standby', 2);
  await inTime('the standby worker is started', standby.message(says('started')));
  const payload = { poison: false };
  await store.append(streamName(1), [newEvent('before', { payload })]);
  await until('the owner handles an event', isDone('before'));
  await owner.kill('SIGKILL');
  await store.append(streamName(1), [newEvent('after', { payload })]);
  await until('the standby worker handles an event', isDone('after'));
  assert.deepEqual(
    (await effects()).map(({ eventId, worker }) => [eventId, worker]),
    [
      ['before', 'owner'],
      ['after', 'standby'],
    ],
  );
}

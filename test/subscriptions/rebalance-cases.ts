// Workers leave, die and join while events are appended: shards are shared evenly, and effects stay correct.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import type { Child } from '../../src/testing/child-process.ts';
import { inTime, newEvent, streamName, until, type EngineName } from '../store/rig.ts';
import { checkEffects } from './effects.ts';
import {
  says,
  startWorker,
  subscriptionName,
  type OpenedRig,
  type WorkerPlan,
} from './kill-workers.ts';
import { planOf } from './plan.ts';

const shards = 4;
const leaseMs = 3_000;

export function rebalanceCases(engine: EngineName, open: () => Promise<OpenedRig>): void {
  test(`workers on ${engine} that leave, die and join share the shards evenly, and no event is lost, repeated or reordered`, async () => {
    await using rig = await open();
    const plan = { ...planOf({ engine, url: rig.url, seed: 1 }), shards, leaseMs };
    const workers = new Map<string, Child>();
    try {
      for (const name of ['one', 'two']) workers.set(name, startFailing(plan, name));
      await evenly(['one', 'two']);
      const appending = appendWhile(rig);
      await worked('one');
      await leave('one');
      await evenly(['two']);
      workers.set('three', startFailing(plan, 'three'));
      await evenly(['two', 'three']);
      await worked('two');
      await worked('three');
      await workers.get('two')?.kill('SIGKILL');
      await evenly(['three']);
      await appending.end();
      const stored = await rig.store.readAll().toArray();
      await until(
        'all events are applied',
        async () => (await rig.effects()).length >= stored.length,
      );
      await leave('three');
      assert.deepEqual(checkEffects(stored, await rig.effects()).slice(0, 10), []);
      const names = new Set((await rig.effects()).map(({ worker }) => worker));
      assert.deepEqual([...names].toSorted(), ['one', 'three', 'two']);
    } finally {
      await Promise.all([...workers.values()].map((worker) => worker.kill()));
    }

    async function worked(name: string): Promise<void> {
      await until(`${name} has an effect`, async () =>
        (await rig.effects()).some(({ worker }) => worker === name),
      );
    }

    async function leave(name: string): Promise<void> {
      const worker = workers.get(name);
      worker?.send('stop');
      if (worker !== undefined) await inTime(`${name} leaves`, worker.message(says('stopped')));
    }

    /** Checks the leases in the database, not the reports of the workers. */
    async function evenly(names: readonly string[]): Promise<void> {
      const share = shards / names.length;
      await until(`${names.join(', ')} have ${share} shards each`, async () => {
        const leases = await rig.subscriptions.leases.list(subscriptionName);
        const activeLeases = leases.filter(({ remainingMs }) => remainingMs > 0);
        return names.every(
          (name) => activeLeases.filter(({ owner }) => owner === name).length === share,
        );
      });
    }
  });
}

function startFailing(plan: WorkerPlan, name: string): Child {
  return startWorker(plan, name, 1, { failuresPerMille: 5 });
}

/** Appends one event after the other to several aggregates until `end()`. */
function appendWhile({ store }: OpenedRig): { end(): Promise<void> } {
  let isOver = false;
  const running = (async (): Promise<void> => {
    for (let at = 0; !isOver; at += 1) {
      const event = newEvent(`e${at}`, { payload: { poison: false } });
      await store.append(streamName(at % 40), [event]);
      await systemClock.sleep(20);
    }
  })();
  return {
    async end() {
      isOver = true;
      await running;
    },
  };
}

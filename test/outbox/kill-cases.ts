// Dispatchers that are killed, frozen and stopped at random while messages come in: every one arrives, each
// key in order, and nothing stays claimed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { newMessage } from '../../src/outbox/ledger-fixture.conformance.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { newSeed, soakMinutes, until, type EngineName } from '../store/rig.ts';
import type { DispatcherInput } from './dispatcher-main.ts';
import { openLedger } from './open-ledger.ts';
import { startReceiver } from './receiver.ts';

const messages = soakMinutes > 0 ? 1_500 : 750;
const perEnqueue = 25;
const workers = 3;
const leaseMs = 2_000;
const faultsMin = soakMinutes > 0 ? 12 : 7;

export function killCases(engine: EngineName, place: () => Promise<string>): void {
  test(`dispatchers on ${engine} that are killed at random lose nothing and leave nothing claimed`, async () => {
    const seed = newSeed();
    const random = seededRandom(seed);
    const url = await place();
    await using receiver = await startReceiver();
    await using ledger = await openLedger({ engine, url });
    let started = 0;
    const start = (): Child => {
      started += 1;
      const input = { engine, url, receiver: receiver.url, seed: seed + started, leaseMs };
      return startChild(new URL('./dispatcher-main.ts', import.meta.url), {
        input: input satisfies DispatcherInput,
      });
    };
    const isStarted = (message: unknown): message is string => message === 'started';
    const isStopped = (message: unknown): message is string => message === 'stopped';
    const children = Array.from({ length: workers }, start);
    try {
      await Promise.all(children.map((child) => child.message(isStarted)));
      const enqueueing = enqueueAll();
      let isEnqueued = false;
      void enqueueing.then(() => (isEnqueued = true));
      for (let faults = 0; faults < faultsMin || !isEnqueued; faults += 1) {
        await systemClock.sleep(50 + random.below(250));
        const slot = random.below(workers);
        const child = children[slot] as Child;
        const kind = random.below(4);
        if (kind === 0) {
          // Others take over meanwhile; then it wakes up and believes to be the owner.
          process.kill(child.pid, 'SIGSTOP');
          await systemClock.sleep(leaseMs * 1.2);
          process.kill(child.pid, 'SIGCONT');
          continue;
        }
        if (kind === 1) {
          await child.message(isStarted);
          child.send('stop');
          await child.message(isStopped);
        }
        await child.kill('SIGKILL');
        children[slot] = start();
      }
      await enqueueing;
      await until('everything is sent', async () => {
        const { PENDING, CLAIMED, FAILED } = await ledger.counts();
        return PENDING + CLAIMED + FAILED === 0;
      });
    } finally {
      await Promise.all(children.map((child) => child.kill()));
    }
    const counts = { PENDING: 0, CLAIMED: 0, SENT: messages, FAILED: 0, DEAD: 0 };
    assert.deepEqual(await ledger.counts(), counts, `seed ${seed}`);
    assert.equal(receiver.effects.length, messages, `seed ${seed}`);
    const last = new Map<string, number>();
    for (const { orderingKey, at } of receiver.effects) {
      if (orderingKey === undefined) continue;
      assert.ok((last.get(orderingKey) ?? -1) < at, `seed ${seed}: ${orderingKey} ${at} came late`);
      last.set(orderingKey, at);
    }

    async function enqueueAll(): Promise<void> {
      for (let at = 0; at < messages; at += perEnqueue) {
        const items = Array.from({ length: perEnqueue }, (_, each) =>
          newMessage({
            tenantId: `t${each % 3}`,
            // Whoever is killed in the middle of it, over and over, is not the message's fault here.
            maxAttempts: 1_000,
            payload: { at: at + each },
            ...(each % 2 === 0 ? {} : { orderingKey: `k${each % 5}` }),
          }),
        );
        await ledger.enqueueMany(items);
        await systemClock.sleep(20);
      }
    }
  });
}

// Stream relays that are killed, frozen and stopped at random while messages come in: every one arrives, and
// the first deliveries of each key are in order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { newMessage } from '../../src/outbox/ledger-fixture.conformance.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { newSeed, until } from '../store/rig.ts';
import { openLedger } from './open-ledger.ts';
import { startReceiver } from './receiver.ts';
import type { StreamRelayInput } from './stream-relay-main.ts';

const integrationType = 'kafka:killed';
const messages = 1_500;
const perEnqueue = 25;
const relays = 2;
const leaseMs = 2_000;
const faultsMin = 8;

test('stream relays that are killed at random lose nothing, and keep the order of each key', async () => {
  const seed = newSeed();
  const random = seededRandom(seed);
  const { url } = await sharedPostgres();
  await using receiver = await startReceiver();
  await using ledger = await openLedger({ engine: 'postgres', url });
  await ledger.streams.declare(integrationType, { lanes: 6 });
  let started = 0;
  const start = (): Child => {
    started += 1;
    const input = { engine: 'postgres', url, receiver: receiver.url, leaseMs } as const;
    return startChild(new URL('./stream-relay-main.ts', import.meta.url), {
      input: { ...input, seed: seed + started, integrationType } satisfies StreamRelayInput,
    });
  };
  const isStarted = (message: unknown): message is string => message === 'started';
  const isStopped = (message: unknown): message is string => message === 'stopped';
  const children = Array.from({ length: relays }, start);
  try {
    await Promise.all(children.map((child) => child.message(isStarted)));
    let isEnqueued = false;
    const enqueueing = enqueueAll().finally(() => (isEnqueued = true));
    for (let faults = 0; faults < faultsMin || !isEnqueued; faults += 1) {
      await systemClock.sleep(100 + random.below(300));
      const slot = random.below(relays);
      const child = children[slot] as Child;
      const kind = random.below(4);
      if (kind === 0) {
        // The other one takes over meanwhile; then it wakes up and believes to be the owner.
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
    await until('everything is sent', async () => (await ledger.counts()).SENT === messages);
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
          integrationType,
          tenantId: `t${each % 3}`,
          // Whoever is killed in the middle of it, over and over, is not the message's fault here.
          maxAttempts: 1_000,
          payload: { at: at + each },
          ...(each % 5 === 0 ? {} : { orderingKey: `k${each % 11}` }),
        }),
      );
      await ledger.enqueueMany(items);
      await systemClock.sleep(20);
    }
  }
});

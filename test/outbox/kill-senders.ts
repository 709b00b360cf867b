// Kills, freezes and stops sender processes: every message arrives, each key stays in order, and no
// message stays claimed.

import assert from 'node:assert/strict';
import { systemClock } from '../../src/foundation/clock.ts';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import type { EnqueueOutboxProps, OutboxLedger } from '../../src/outbox/index.ts';
import type { Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { freezeProcess } from '../store/freeze-process.ts';
import { isText, soakMinutes, until } from '../store/rig.ts';
import type { Receiver } from './receiver.ts';

export interface SenderPlan {
  readonly seed: number;
  readonly ledger: OutboxLedger;
  /** The URL of the ledger. */
  readonly url: string;
  readonly receiver: Receiver;
  readonly leaseMs: number;
  /** The child reports `started`, `delivered` for each message, and `stopped` when it was asked to stop. */
  readonly start: () => Child;
  /** The fields of the message with this index in a batch of 25. */
  readonly message: (each: number) => Partial<EnqueueOutboxProps>;
}

const faultKinds = ['killed', 'frozen', 'stopped'] as const;
/** Each kind of fault once; a soak has more faults and more messages. */
const { messagesMin, faultsMin, senders, pauseMs } =
  soakMinutes > 0
    ? { messagesMin: 1_500, faultsMin: 12, senders: 3, pauseMs: 20 }
    : { messagesMin: 150, faultsMin: faultKinds.length, senders: 2, pauseMs: 400 };
const perEnqueue = 25;

export async function killSenders(plan: SenderPlan): Promise<void> {
  const { seed, ledger, receiver, leaseMs, start } = plan;
  const random = seededRandom(seed);
  const children = Array.from({ length: senders }, start);
  const faulting = new AbortController();
  let messages = 0;
  try {
    await Promise.all(children.map((child) => child.message(isText('started'))));
    const enqueueing = enqueueUntil(plan, faulting.signal);
    for (let faults = 0; faults < faultsMin; faults += 1) {
      const slot = random.below(senders);
      const child = children[slot] as Child;
      // Messages arrive until the last fault, so the sender has work that a fault could lose.
      await child.message(isText('delivered'));
      await systemClock.sleep(random.below(100));
      const kind = faultKinds[faults] ?? random.pick(faultKinds);
      if (kind === 'frozen') {
        // Other processes take over, and the frozen one still believes that it is the owner.
        await freezeProcess(child.pid, leaseMs * 1.2, plan.url);
        continue;
      }
      if (kind === 'stopped') {
        child.send('stop');
        await child.message(isText('stopped'));
      }
      await child.kill('SIGKILL');
      children[slot] = start();
    }
    faulting.abort();
    messages = await enqueueing;
    await until('all messages are sent', async () => (await ledger.counts()).SENT === messages);
  } finally {
    faulting.abort();
    await Promise.all(children.map((child) => child.kill()));
  }
  const counts = { PENDING: 0, CLAIMED: 0, SENT: messages, FAILED: 0, DEAD: 0, DISCARDED: 0 };
  assert.deepEqual(await ledger.counts(), counts, `seed ${seed}`);
  assert.equal(receiver.effects.length, messages, `seed ${seed}`);
  const last = new Map<string, number>();
  for (const { orderingKey, at } of receiver.effects) {
    if (orderingKey === undefined) continue;
    assert.ok(
      (last.get(orderingKey) ?? -1) < at,
      `seed ${seed}: ${orderingKey} ${at} is out of order`,
    );
    last.set(orderingKey, at);
  }
}

/** Enqueues until the signal fires and `messagesMin` is reached; resolves to the number of messages. */
async function enqueueUntil({ ledger, message }: SenderPlan, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (count < messagesMin || !signal.aborted) {
    const items = Array.from({ length: perEnqueue }, (_, each) =>
      newMessage({
        tenantId: `t${each % 3}`,
        // A message whose sender is killed repeatedly must not become a dead letter here.
        maxAttempts: 1_000,
        payload: { at: count + each },
        ...message(each),
      }),
    );
    await ledger.enqueueMany(items);
    count += perEnqueue;
    await systemClock.sleep(pauseMs);
  }
  return count;
}

// Processes that send what is enqueued, and are killed, frozen and stopped on the way: every message arrives,
// each key in order, and nothing stays claimed.

import assert from 'node:assert/strict';
import { systemClock } from '../../src/foundation/clock.ts';
import { newMessage } from '../../src/testing/conformance/outbox/fixture.ts';
import type { EnqueueOutboxProps, OutboxLedger } from '../../src/outbox/index.ts';
import type { Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { freezeProcess } from '../store/freeze-process.ts';
import { soakMinutes, until } from '../store/rig.ts';
import type { Receiver } from './receiver.ts';

export interface SenderPlan {
  readonly seed: number;
  readonly ledger: OutboxLedger;
  /** Of the ledger. */
  readonly url: string;
  readonly receiver: Receiver;
  readonly leaseMs: number;
  /** Reports `started`, then `delivered` for each message, and `stopped` after it was asked to stop. */
  readonly start: () => Child;
  /** What the messages have in common; `each` counts within a batch of 25. */
  readonly message: (each: number) => Partial<EnqueueOutboxProps>;
}

const faultKinds = ['killed', 'frozen', 'stopped'] as const;
/** Each kind once; more of them, and more messages, in a soak. */
const { messagesMin, faultsMin, senders, pauseMs } =
  soakMinutes > 0
    ? { messagesMin: 1_500, faultsMin: 12, senders: 3, pauseMs: 20 }
    : { messagesMin: 150, faultsMin: faultKinds.length, senders: 2, pauseMs: 400 };
const perEnqueue = 25;

const says =
  (word: string) =>
  (message: unknown): message is string =>
    message === word;

export async function killSenders(plan: SenderPlan): Promise<void> {
  const { seed, ledger, receiver, leaseMs, start } = plan;
  const random = seededRandom(seed);
  const children = Array.from({ length: senders }, start);
  const faulting = new AbortController();
  let messages = 0;
  try {
    await Promise.all(children.map((child) => child.message(says('started'))));
    const enqueueing = enqueueUntil(plan, faulting.signal);
    for (let faults = 0; faults < faultsMin; faults += 1) {
      const slot = random.below(senders);
      const child = children[slot] as Child;
      // It has work that a fault could lose: messages come in until the last fault.
      await child.message(says('delivered'));
      await systemClock.sleep(random.below(100));
      const kind = faultKinds[faults] ?? random.pick(faultKinds);
      if (kind === 'frozen') {
        // Others take over meanwhile; then it wakes up and believes that it is still the owner.
        await freezeProcess(child.pid, leaseMs * 1.2, plan.url);
        continue;
      }
      if (kind === 'stopped') {
        child.send('stop');
        await child.message(says('stopped'));
      }
      await child.kill('SIGKILL');
      children[slot] = start();
    }
    faulting.abort();
    messages = await enqueueing;
    await until('everything is sent', async () => (await ledger.counts()).SENT === messages);
  } finally {
    faulting.abort();
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
}

/** Resolves to the number of messages, once the signal has fired and there are enough of them. */
async function enqueueUntil({ ledger, message }: SenderPlan, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (count < messagesMin || !signal.aborted) {
    const items = Array.from({ length: perEnqueue }, (_, each) =>
      newMessage({
        tenantId: `t${each % 3}`,
        // A message whose sender is killed again and again must not end as a dead letter here.
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

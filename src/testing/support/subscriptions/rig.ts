// Shared setup of the subscription tests: a store in memory with a fake clock, events, and `until`.

import { memoryEventStore } from '../../../engines/memory/memory-event-store.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import type { MemoryTransaction } from '../../../subscriptions/memory/storage.ts';
import type { SubscriptionHost } from '../../../subscriptions/subscription-storage.ts';
import { newEvent } from '../../conformance/store/fixture.ts';
import { fakeClock, type FakeClock } from '../../fake-clock.ts';

type MemoryStore = EventStore & SubscriptionHost<MemoryTransaction>;

export interface Rig {
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  /** Appends one event per number; each letter is a stream. */
  readonly append: (stream: string, ...numbers: readonly number[]) => Promise<void>;
}

export function createRig(): Rig {
  const clock = fakeClock();
  const store = memoryEventStore({ clock });
  return {
    clock,
    store,
    async append(stream, ...numbers) {
      await store.append(
        streamOf(stream),
        numbers.map((number) => newEvent({ payload: { number } })),
      );
    },
  };
}

export function streamOf(id: string): string {
  return `banking.account.v1-core-${id}`;
}

/** `a1`: event 1 of stream a. */
export function labelOf({ stream, payload }: RecordedEvent): string {
  return `${stream.slice(streamOf('').length)}${(payload as { number: number }).number}`;
}

/** Advances the clock until the condition holds. */
export async function until(
  clock: FakeClock,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  for (let round = 0; round < 5_000; round += 1) {
    if (await holds()) return;
    await new Promise(setImmediate);
    await clock.advance(round < 20 ? 0 : 50);
  }
  throw new Error('the condition never held');
}

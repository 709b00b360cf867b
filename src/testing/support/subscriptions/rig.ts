// Shared setup of the subscription tests: an engine in memory with a fake clock, events, and `until`.

import { openMemory, type MemoryEngine } from '../../../engines/memory/index.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { newEvent } from '../../conformance/store/fixture.ts';
import type { SubscriptionStorage } from '../../../subscriptions/subscription-storage.ts';
import { memorySubscriptionStorage, type MemoryTransaction } from './memory/storage.ts';
import { fakeClock, type FakeClock } from '../../fake-clock.ts';

export interface Rig {
  readonly clock: FakeClock;
  readonly db: Pick<MemoryEngine, 'store'> & {
    readonly subscriptions: SubscriptionStorage<MemoryTransaction>;
  };
  /** Appends one event per number; each letter is a stream. */
  readonly append: (stream: string, ...numbers: readonly number[]) => Promise<void>;
}

export function createRig(): Rig {
  const clock = fakeClock();
  const { store } = openMemory({ clock });
  const db = { store, subscriptions: memorySubscriptionStorage({ clock }) };
  return {
    clock,
    db,
    async append(stream, ...numbers) {
      await db.store.append(
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

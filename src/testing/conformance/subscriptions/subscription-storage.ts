// The one suite of the storage of subscriptions: every engine of ours runs it, and so can users with
// one of their own. What an engine cannot do is a capability with a name, and its cases are skipped by it.

import { checkpointCases } from './checkpoint-store.ts';
import { deadLetterCases } from './dead-letter-store.ts';
import { leaseCases } from './lease-store.ts';
import { processedCases } from './processed-events.ts';
import type { StorageCase, StorageCases, SubscriptionStorageFixture } from './fixture.ts';
import { transactionCases } from './effect-transaction.ts';
import { memorySubscriptionStorage } from '../../../subscriptions/memory-subscription-storage.ts';
import type {
  LeaseStore,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';
import { waitingCases } from './waiting-events.ts';

export type { StorageCase, SubscriptionStorageFixture } from './fixture.ts';

/** How the suite gets leases of the adapter under test. */
export interface LeaseStoreFixture {
  open(): Promise<LeaseStore>;
  /** One more connection to the same leases, as another process would have it. */
  second?(): Promise<LeaseStore>;
}

const topics: Readonly<Record<string, StorageCases>> = {
  checkpoints: checkpointCases,
  leases: leaseCases,
  waiting: waitingCases,
  'dead letters': deadLetterCases,
  'processed events': processedCases,
  transactions: transactionCases,
};

/**
 * All cases, for any test runner; each names its own subscriptions, so that they can share a storage.
 *
 * @example
 * import { test } from 'node:test';
 * import { memorySubscriptionStorage } from 'millrace/subscriptions';
 * import { subscriptionStorageConformance } from 'millrace/testing';
 *
 * const storage = memorySubscriptionStorage();
 * const { capabilities } = storage;
 * const cases = subscriptionStorageConformance({ capabilities, open: async () => storage });
 * for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);
 */
export function subscriptionStorageConformance<Transaction>(
  fixture: SubscriptionStorageFixture<Transaction>,
): readonly StorageCase[] {
  return casesOf(topics, fixture);
}

/**
 * The cases of leases alone, for a `LeaseStore` that is kept beside the storage.
 *
 * @example
 * import { test } from 'node:test';
 * import { memorySubscriptionStorage } from 'millrace/subscriptions';
 * import { leaseStoreConformance } from 'millrace/testing';
 *
 * const { leases } = memorySubscriptionStorage();
 * const cases = leaseStoreConformance({ open: async () => leases });
 * for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);
 */
export function leaseStoreConformance(fixture: LeaseStoreFixture): readonly StorageCase[] {
  // The cases ask for nothing else of it.
  const around = (leases: LeaseStore): SubscriptionStorage => ({
    ...memorySubscriptionStorage(),
    leases,
  });
  return casesOf(
    { leases: leaseCases },
    {
      capabilities: {
        transactions: false,
        durable: false,
        crossProcess: fixture.second !== undefined,
      },
      open: async () => around(await fixture.open()),
      async second() {
        const second = await fixture.second?.();
        if (second === undefined) throw new Error('the fixture has no second');
        return around(second);
      },
    },
  );
}

function casesOf<Transaction>(
  chosen: Readonly<Record<string, StorageCases>>,
  fixture: SubscriptionStorageFixture<Transaction>,
): readonly StorageCase[] {
  return Object.entries(chosen).flatMap(([topic, cases]) =>
    Object.entries(cases).map(([sentence, given]): StorageCase => {
      const { needs, run } = typeof given === 'function' ? { needs: undefined, run: given } : given;
      const isMissing =
        needs !== undefined &&
        (!fixture.capabilities[needs] ||
          (needs === 'transactions' && fixture.effects === undefined));
      return {
        name: `${topic}: ${sentence}`,
        ...(isMissing ? { skip: `needs ${needs}` } : {}),
        async run() {
          const storage = await fixture.open();
          await run({ storage, fixture });
        },
      };
    }),
  );
}

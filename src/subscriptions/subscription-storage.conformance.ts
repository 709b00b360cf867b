// The one suite of the storage of subscriptions: every engine of ours runs it, and so can users with
// one of their own. What an engine cannot do is a capability with a name, and its cases are skipped by it.

import { checkpointCases } from './checkpoint-store.conformance.ts';
import { deadLetterCases } from './dead-letter-store.conformance.ts';
import { leaseCases } from './lease-store.conformance.ts';
import { processedCases } from './processed-events.conformance.ts';
import type {
  StorageCase,
  StorageCases,
  SubscriptionStorageFixture,
} from './storage-fixture.conformance.ts';
import { transactionCases } from './effect-transaction.conformance.ts';
import { waitingCases } from './waiting-events.conformance.ts';

export type { StorageCase, SubscriptionStorageFixture } from './storage-fixture.conformance.ts';

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
  return Object.entries(topics).flatMap(([topic, cases]) =>
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

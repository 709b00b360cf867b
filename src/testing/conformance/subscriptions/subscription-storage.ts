// The conformance suite of subscription storages, for our engines and for adapters of users. A case is skipped if it
// needs a capability that the engine lacks; the reason names the capability.

import { checkpointCases } from './checkpoint-store.ts';
import { deadLetterCases } from './dead-letter-store.ts';
import { leaseCases } from './lease-store.ts';
import { processedCases } from './processed-events.ts';
import type { StorageCase, StorageCases, SubscriptionStorageFixture } from './fixture.ts';
import { transactionCases } from './effect-transaction.ts';
import { openMemory } from '../../../engines/memory/index.ts';
import type {
  LeaseStore,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';
import { waitingCases } from './waiting-events.ts';

export type { StorageCase, SubscriptionStorageFixture } from './fixture.ts';

/** Provides lease stores of the adapter under test. */
export interface LeaseStoreFixture {
  open(): Promise<LeaseStore>;
  /** A second connection to the same leases, as in another process. */
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
 * All cases, for any test runner. Each uses separate subscriptions, so they can share a storage.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { subscriptionStorageConformance } from 'millrace/testing';
 *
 * const storage = openMemory().subscriptions;
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
 * The lease cases only, for a `LeaseStore` outside the storage.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { leaseStoreConformance } from 'millrace/testing';
 *
 * const { leases } = openMemory().subscriptions;
 * const cases = leaseStoreConformance({ open: async () => leases });
 * for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);
 */
export function leaseStoreConformance(fixture: LeaseStoreFixture): readonly StorageCase[] {
  // The lease cases use nothing else.
  const around = (leases: LeaseStore): SubscriptionStorage => ({
    ...openMemory().subscriptions,
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
        if (second === undefined) throw new Error('the fixture has no second connection');
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
        skip: isMissing ? `needs ${needs}` : undefined,
        async run() {
          const storage = await fixture.open();
          await run({ storage, fixture });
        },
      };
    }),
  );
}

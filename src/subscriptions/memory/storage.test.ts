import { test } from 'node:test';
import { subscriptionStorageConformance } from '../../testing/conformance/subscriptions/subscription-storage.ts';
import { memorySubscriptionStorage, type MemoryTransaction } from './storage.ts';

const storage = memorySubscriptionStorage();
const effects: string[] = [];

for (const { name, skip, run } of subscriptionStorageConformance<MemoryTransaction>({
  capabilities: storage.capabilities,
  open: async () => storage,
  effects: {
    async write(transaction, key) {
      transaction.onCommit(() => effects.push(key));
    },
    count: async (key) => effects.filter((each) => each === key).length,
  },
})) {
  test(`subscriptions in memory: ${name}`, { skip: skip ?? false }, run);
}

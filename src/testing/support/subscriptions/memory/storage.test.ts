import { test } from 'node:test';
import { subscriptionStorageConformance } from '../../../conformance/subscriptions/subscription-storage.ts';
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
  test(`reference of subscriptions: ${name}`, { skip: skip ?? false }, run);
}

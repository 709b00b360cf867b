import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import type { MemoryTransaction } from './memory/storage.ts';
import { createRig, labelOf, until } from '../testing/support/subscriptions/rig.ts';
import { startSubscription } from './subscription-runner.ts';
import type { Settlement, SubscriptionStorage } from './subscription-storage.ts';
import { subscription, type SubscriptionDefinition } from './subscription.ts';

type Storage = SubscriptionStorage<MemoryTransaction>;

const name = 'sub:banking:claims:v1';
const away = (): never => {
  throw new MillraceError('STORE_UNAVAILABLE', 'away');
};

/** Both kinds of effect in one handler. */
function sending(sent: string[], had: string[]): SubscriptionDefinition<MemoryTransaction> {
  return {
    name,
    async handler(event, { claim, transaction }) {
      const { onCommit } = await transaction();
      onCommit(() => void had.push(labelOf(event)));
      if (await claim()) sent.push(labelOf(event));
    },
  };
}

/** Fails so often, before or behind what it does. */
function failing<Args extends readonly unknown[], T>(
  call: (...args: Args) => Promise<T>,
  faults: ('before' | 'behind')[],
): (...args: Args) => Promise<T> {
  return async (...args) => {
    const fault = faults.shift();
    if (fault === 'before') away();
    const result = await call(...args);
    return fault === 'behind' ? away() : result;
  };
}

for (const fault of ['before', 'behind'] as const) {
  test(`a confirmation that fails ${fault} the database took it does not repeat the act`, async () => {
    const { store, clock, append } = createRig();
    const shared = store.subscriptions;
    const { processed } = shared;
    const confirm = failing(
      (...args: Parameters<typeof processed.confirm>) => processed.confirm(...args),
      [fault, fault],
    );
    const storage: Storage = { ...shared, processed: { ...processed, confirm } };
    const [sent, had]: string[][] = [[], []];
    const each = subscription(sending(sent ?? [], had ?? []));
    await using runner = await startSubscription(store, each, { clock, storage });
    await append('a', 1, 2);
    await until(clock, () => had?.length === 2);
    assert.deepEqual(
      [sent, had],
      [
        ['a1', 'a2'],
        ['a1', 'a2'],
      ],
    );
    assert.equal(await shared.deadLetters.count({}), 0);
    void runner;
  });

  test(`a commit that fails ${fault} the database took it does not repeat the act`, async () => {
    const { store, clock, append } = createRig();
    const shared = store.subscriptions;
    const faults = [fault, fault];
    const storage: Storage = {
      ...shared,
      async begin(fence) {
        const effect = await shared.begin(fence);
        return {
          ...effect,
          commit: failing((settlement: Settlement) => effect.commit(settlement), faults),
        };
      },
    };
    const [sent, had]: string[][] = [[], []];
    const each = subscription(sending(sent ?? [], had ?? []));
    await using runner = await startSubscription(store, each, { clock, storage });
    await append('a', 1, 2);
    await until(clock, () => had?.length === 2 && sent?.length === 2);
    await runner.whenCaughtUp();
    assert.deepEqual(
      [sent, had],
      [
        ['a1', 'a2'],
        ['a1', 'a2'],
      ],
    );
  });
}

test('a handler that asks twice has one claim, and one that fails gives it back at once', async () => {
  const { store, clock, append } = createRig();
  const asked: boolean[] = [];
  const each = subscription({
    name,
    retry: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0, attemptsMax: 3 },
    async handler(_event, { claim, attempt }) {
      asked.push(await claim(), await claim());
      if (attempt === 1) throw new Error('refused');
    },
  });
  await using runner = await startSubscription(store, each, { clock });
  await append('a', 1);
  await until(clock, () => asked.length === 4);
  assert.deepEqual(asked, [true, true, true, true]);
  await runner.whenCaughtUp();
});

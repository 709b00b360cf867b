import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { createRig, labelOf, until } from '../testing/support/subscriptions/rig.ts';
import type { MemoryTransaction } from '../testing/support/subscriptions/memory/storage.ts';
import { startSubscription } from './subscription-runner.ts';
import type { Settlement, SubscriptionStorage } from './subscription-storage.ts';
import { subscription, type SubscriptionDefinition } from './subscription.ts';

type Storage = SubscriptionStorage<MemoryTransaction>;

const name = 'sub:banking:claims:v1';
const unavailable = (): never => {
  throw new MillraceError('STORE_UNAVAILABLE', 'connection refused');
};

/** A handler with an external effect and one in the database. */
function sending(sent: string[], stored: string[]): SubscriptionDefinition<MemoryTransaction> {
  return {
    name,
    async handler(event, { claim, transaction }) {
      const { onCommit } = await transaction();
      onCommit(() => void stored.push(labelOf(event)));
      if (await claim()) sent.push(labelOf(event));
    },
  };
}

/** Fails once per entry, before or after the call. */
function failing<Args extends readonly unknown[], T>(
  call: (...args: Args) => Promise<T>,
  faults: ('before' | 'after')[],
): (...args: Args) => Promise<T> {
  return async (...args) => {
    const fault = faults.shift();
    if (fault === 'before') unavailable();
    const result = await call(...args);
    return fault === 'after' ? unavailable() : result;
  };
}

for (const fault of ['before', 'after'] as const) {
  test(`a confirmation that fails ${fault} it is stored does not repeat the effect`, async () => {
    const { db, clock, append } = createRig();
    const shared = db.subscriptions;
    const { processed } = shared;
    const confirm = failing(
      (...args: Parameters<typeof processed.confirm>) => processed.confirm(...args),
      [fault, fault],
    );
    const storage: Storage = { ...shared, processed: { ...processed, confirm } };
    const [sent, stored]: string[][] = [[], []];
    const each = subscription(sending(sent ?? [], stored ?? []));
    await using runner = await startSubscription({ ...db, subscriptions: storage }, each, {
      clock,
    });
    await append('a', 1, 2);
    await until(clock, () => stored?.length === 2);
    assert.deepEqual(
      [sent, stored],
      [
        ['a1', 'a2'],
        ['a1', 'a2'],
      ],
    );
    assert.equal(await shared.deadLetters.count({}), 0);
    void runner;
  });

  test(`a commit that fails ${fault} it is stored does not repeat the effect`, async () => {
    const { db, clock, append } = createRig();
    const shared = db.subscriptions;
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
    const [sent, stored]: string[][] = [[], []];
    const each = subscription(sending(sent ?? [], stored ?? []));
    await using runner = await startSubscription({ ...db, subscriptions: storage }, each, {
      clock,
    });
    await append('a', 1, 2);
    await until(clock, () => stored?.length === 2 && sent?.length === 2);
    await runner.whenCaughtUp();
    assert.deepEqual(
      [sent, stored],
      [
        ['a1', 'a2'],
        ['a1', 'a2'],
      ],
    );
  });
}

test('two claim calls of a handler share one claim, and a failed handler releases it', async () => {
  const { db, clock, append } = createRig();
  const claims: boolean[] = [];
  const each = subscription({
    name,
    retry: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0, attemptsMax: 3 },
    async handler(_event, { claim, attempt }) {
      claims.push(await claim(), await claim());
      if (attempt === 1) throw new Error('refused');
    },
  });
  await using runner = await startSubscription(db, each, { clock });
  await append('a', 1);
  await until(clock, () => claims.length === 4);
  assert.deepEqual(claims, [true, true, true, true]);
  await runner.whenCaughtUp();
});

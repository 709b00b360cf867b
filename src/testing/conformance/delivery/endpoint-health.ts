// The conformance suite of endpoint health stores.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  healthy,
  type EndpointHealth,
  type EndpointHealthStore,
} from '../../../delivery/endpoint-health.ts';

export interface EndpointHealthCase {
  /** A sentence. */
  readonly name: string;
  /** Rejects if the store fails the case. */
  readonly run: () => Promise<void>;
}

type Body = (store: EndpointHealthStore, second: EndpointHealthStore) => Promise<void>;

const failedOnce = (health: EndpointHealth): EndpointHealth => ({
  ...health,
  failures: health.failures + 1,
});

const cases: Readonly<Record<string, Body>> = {
  async 'an endpoint without changes has no record'(store) {
    assert.equal(await store.read(randomUUID()), undefined);
  },

  async 'the first change starts from a healthy record'(store, second) {
    const id = randomUUID();
    const seen: EndpointHealth[] = [];
    const after = await store.update(id, (health) => {
      seen.push(health);
      return failedOnce(health);
    });
    assert.deepEqual(seen, [healthy]);
    assert.deepEqual(after, { failures: 1 });
    assert.deepEqual(await second.read(id), { failures: 1 });
  },

  async 'returns all stored fields unchanged'(store, second) {
    const id = `acme ü"'; ${randomUUID()}`;
    const health: EndpointHealth = {
      failures: 12,
      failingSinceMs: 1_759_226_400_123,
      disabled: { atMs: 1_759_658_400_456, reason: 'it\'s "gone" 🌍' },
    };
    await store.update(id, () => health);
    assert.deepEqual(await second.read(id), health);
  },

  async 'a recovery removes the record'(store, second) {
    const id = randomUUID();
    await store.update(id, () => ({ failures: 3, failingSinceMs: 5 }));
    assert.deepEqual(await store.update(id, () => healthy), healthy);
    assert.deepEqual((await second.read(id)) ?? healthy, healthy);
    assert.deepEqual(await second.update(id, failedOnce), { failures: 1 });
  },

  async 'applies all concurrent changes, including first ones'(store, second) {
    const id = randomUUID();
    const calls = Array.from({ length: 24 }, (_, index) =>
      (index % 2 === 0 ? store : second).update(id, failedOnce),
    );
    const seen = (await Promise.all(calls)).map(({ failures }) => failures);
    assert.equal((await store.read(id))?.failures, 24);
    assert.equal(new Set(seen).size, 24);
  },

  async 'a change that throws changes nothing and releases its lock'(store, second) {
    const id = randomUUID();
    await store.update(id, failedOnce);
    const broken = store.update(id, () => {
      throw new Error('broken');
    });
    await assert.rejects(broken, /broken/);
    assert.deepEqual(await second.update(id, failedOnce), { failures: 2 });
  },

  async 'endpoints are independent'(store) {
    const [one, two] = [randomUUID(), randomUUID()];
    await store.update(one, failedOnce);
    await store.update(two, () => ({ failures: 7 }));
    assert.deepEqual(await store.read(one), { failures: 1 });
  },
};

/**
 * All cases, for any test runner. `second` is another connection to the same store.
 *
 * @example
 * import { test } from 'node:test';
 * import { memoryEndpointHealth } from 'millrace/delivery';
 * import { endpointHealthConformance } from 'millrace/testing';
 *
 * const store = memoryEndpointHealth();
 * for (const { name, run } of endpointHealthConformance({ store })) test(name, run);
 */
export function endpointHealthConformance({
  store,
  second = store,
}: {
  readonly store: EndpointHealthStore;
  readonly second?: EndpointHealthStore;
}): readonly EndpointHealthCase[] {
  return Object.entries(cases).map(([name, run]) => ({ name, run: () => run(store, second) }));
}

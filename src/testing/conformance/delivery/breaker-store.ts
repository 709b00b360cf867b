// The conformance suite of breaker stores.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import type { BreakerStore, SharedBreaker } from '../../../delivery/breaker-store.ts';

export interface BreakerStoreCase {
  /** A sentence. */
  readonly name: string;
  /** Rejects if the store fails the case. */
  readonly run: () => Promise<void>;
}

type Body = (store: BreakerStore, second: BreakerStore) => Promise<void>;

/** Nothing waits for it that goes well. */
const longMs = 600_000;

const cases: Readonly<Record<string, Body>> = {
  async 'an unknown breaker is not listed, may be probed, and cannot be closed'(store) {
    const name = randomUUID();
    assert.equal(await find(store, name), undefined);
    assert.equal(await store.probe(name, { holder: 'a', forMs: longMs }), true);
    assert.equal(await store.close(name, 'a'), false);
  },

  async 'other processes see an open breaker with its remaining time'(store, second) {
    const name = `webhook:acme ü"'; ${randomUUID()}`;
    await store.open(name, { forMs: longMs, openings: 3 });
    const seen = await find(second, name);
    assert.equal(seen?.openings, 3);
    assert.ok(seen.openForMs > 0 && seen.openForMs <= longMs, String(seen.openForMs));
  },

  async 'a shorter opening is ignored, a longer one extends it'(store, second) {
    const name = randomUUID();
    await store.open(name, { forMs: longMs, openings: 2 });
    await second.open(name, { forMs: 1, openings: 0 });
    const kept = await find(store, name);
    assert.ok(kept !== undefined && kept.openForMs > longMs / 2 && kept.openings === 2);
    await second.open(name, { forMs: 3 * longMs, openings: 3 });
    const longer = await find(store, name);
    assert.ok(longer !== undefined && longer.openForMs > longMs && longer.openings === 3);
  },

  async 'no process may probe before the opening expires'(store) {
    const name = randomUUID();
    await store.open(name, { forMs: longMs, openings: 1 });
    assert.equal(await store.probe(name, { holder: 'a', forMs: longMs }), false);
  },

  async 'after the opening expires exactly one process may probe'(store, second) {
    const name = randomUUID();
    await store.open(name, { forMs: 1, openings: 1 });
    await eventually('its time is up', async () => (await find(store, name))?.openForMs === 0);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? store : second).probe(name, { holder: `h-${index}`, forMs: longMs }),
      ),
    );
    assert.equal(answers.filter(Boolean).length, 1);
    const holder = `h-${answers.indexOf(true)}`;
    assert.equal(await second.probe(name, { holder, forMs: longMs }), true, 'the same one again');
    assert.equal(await second.probe(name, { holder: 'late', forMs: longMs }), false);
  },

  async 'another process probes if the prober died'(store, second) {
    const name = randomUUID();
    await store.open(name, { forMs: 1, openings: 1 });
    await eventually('one probes', () => store.probe(name, { holder: 'dies', forMs: 1 }));
    await eventually('another one', () => second.probe(name, { holder: 'next', forMs: longMs }));
    assert.equal(await store.close(name, 'dies'), false);
    assert.equal(await second.close(name, 'next'), true);
  },

  async 'only the prober closes it, for all processes'(store, second) {
    const name = randomUUID();
    await store.open(name, { forMs: 1, openings: 1 });
    assert.equal(await store.close(name, 'a'), false);
    await eventually('it probes', () => store.probe(name, { holder: 'a', forMs: longMs }));
    assert.equal(await second.close(name, 'b'), false);
    assert.equal((await find(second, name))?.openings, 1);
    assert.equal(await store.close(name, 'a'), true);
    assert.equal(await find(second, name), undefined);
  },

  async 'the result of a probe is ignored after the breaker was opened again'(store, second) {
    const name = randomUUID();
    await store.open(name, { forMs: 1, openings: 1 });
    await eventually('it probes', () => store.probe(name, { holder: 'a', forMs: longMs }));
    await second.open(name, { forMs: 1, openings: 2 });
    assert.equal(await store.close(name, 'a'), false);
    assert.equal((await find(store, name))?.openings, 2);
  },

  async 'destinations are independent'(store) {
    const [one, two] = [randomUUID(), randomUUID()];
    await store.open(one, { forMs: longMs, openings: 1 });
    await store.open(two, { forMs: 1, openings: 5 });
    await eventually('it probes', () => store.probe(two, { holder: 'a', forMs: longMs }));
    assert.equal(await store.close(two, 'a'), true);
    assert.equal((await find(store, one))?.openings, 1);
  },
};

/**
 * All cases, for any test runner. `second` is another connection to the same store.
 *
 * @example
 * import { test } from 'node:test';
 * import { memoryBreakerStore } from 'millrace/delivery';
 * import { breakerStoreConformance } from 'millrace/testing';
 *
 * const store = memoryBreakerStore();
 * for (const { name, run } of breakerStoreConformance({ store })) test(name, run);
 */
export function breakerStoreConformance({
  store,
  second = store,
}: {
  readonly store: BreakerStore;
  readonly second?: BreakerStore;
}): readonly BreakerStoreCase[] {
  return Object.entries(cases).map(([name, run]) => ({ name, run: () => run(store, second) }));
}

async function find(store: BreakerStore, name: string): Promise<SharedBreaker | undefined> {
  return (await store.list()).find(({ destination }) => destination === name);
}

// The conformance suite of key stores: cases for any test runner.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as realSleep } from 'node:timers/promises';
import type { KeyStore } from '../../../work/key-store.ts';

export interface KeyStoreFixture {
  readonly keys: KeyStore;
  /** The same store, opened again as another process does. */
  readonly second: KeyStore;
}

export interface KeyStoreCase {
  /** The title of the case, a sentence. */
  readonly name: string;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

type Cases = Readonly<Record<string, (fixture: KeyStoreFixture, key: string) => Promise<void>>>;

/**
 * The suite of `KeyStore`.
 *
 * @example
 * import { test } from 'node:test';
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { keyStoreConformance } from 'millrace/testing';
 *
 * const { keys } = await openSqlite('sqlite:a.db');
 * const { keys: second } = await openSqlite('sqlite:a.db');
 * for (const { name, run } of keyStoreConformance({ keys, second })) test(name, run);
 */
export function keyStoreConformance(fixture: KeyStoreFixture): readonly KeyStoreCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    run: () => run(fixture, `suite:{core}:${randomUUID()}`),
  }));
}

/** Waits in real time, because the engine uses the system clock. */
async function ended(keys: KeyStore, key: string): Promise<void> {
  while ((await keys.get(key)) !== undefined) await realSleep(2);
}

const cases: Cases = {
  'the first put of a key wins, and the others get its value': async ({ keys, second }, key) => {
    assert.equal(await keys.get(key), undefined);
    assert.deepEqual(await keys.putIfAbsent(key, 'a'), { value: 'a', expiresInMs: undefined });
    assert.equal((await second.putIfAbsent(key, 'b')).value, 'a');
    assert.deepEqual(await second.get(key), { value: 'a', expiresInMs: undefined });
  },
  'one of several concurrent puts of a key wins': async ({ keys, second }, key) => {
    const names = Array.from({ length: 40 }, (_, at) => `w${at}`);
    const results = await Promise.all(
      names.map((name, at) => (at % 2 === 0 ? keys : second).putIfAbsent(key, name)),
    );
    assert.equal(new Set(results.map(({ value }) => value)).size, 1);
  },
  'a key expires, and returns its remaining time': async ({ keys, second }, key) => {
    await keys.putIfAbsent(key, 'a', { ttlMs: 60_000 });
    const { expiresInMs = 0 } = (await second.putIfAbsent(key, 'b', { ttlMs: 1 })) ?? {};
    assert.ok(expiresInMs > 50_000 && expiresInMs <= 60_000, String(expiresInMs));
    assert.equal(await keys.replace(key, { from: 'a', to: 'c', ttlMs: 5 }), true);
    await ended(keys, key);
    assert.equal(await keys.replace(key, { from: 'c', to: 'd' }), false);
    assert.equal(await keys.remove(key, 'c'), false);
    assert.equal((await second.putIfAbsent(key, 'e', { ttlMs: 60_000 })).value, 'e');
  },
  'a key is changed or removed only by its current value': async ({ keys, second }, key) => {
    assert.equal(await keys.replace(key, { from: undefined, to: 'a' }), true);
    assert.equal(await second.replace(key, { from: undefined, to: 'b' }), false);
    assert.equal(await second.replace(key, { from: 'x', to: 'b' }), false);
    assert.equal(await second.replace(key, { from: 'a', to: 'b' }), true);
    assert.equal(await keys.remove(key, 'a'), false);
    assert.equal(await keys.remove(key, 'b'), true);
    assert.equal(await second.get(key), undefined);
  },
  'a value that is replaced without a time to live does not expire': async ({ keys }, key) => {
    await keys.putIfAbsent(key, 'a', { ttlMs: 60_000 });
    await keys.replace(key, { from: 'a', to: 'b' });
    assert.deepEqual(await keys.get(key), { value: 'b', expiresInMs: undefined });
  },
};

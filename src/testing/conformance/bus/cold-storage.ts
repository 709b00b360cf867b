// The conformance suite of cold storages: cases for any test runner.

import assert from 'node:assert/strict';
import type { ColdStorage } from '../../../bus/cold-storage.ts';

export interface ColdStorageCase {
  /** The title of the case, a sentence. */
  readonly name: string;
  readonly run: () => Promise<void>;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (data: Uint8Array | undefined): string | undefined =>
  data === undefined ? undefined : Buffer.from(data).toString();

const cases: Readonly<Record<string, (storage: ColdStorage) => Promise<void>>> = {
  async 'returns stored data, and undefined for an unknown name'(storage) {
    const data = Uint8Array.from({ length: 256 }, (_, at) => at);
    assert.equal(await storage.put('a/b.gz', data), true);
    assert.deepEqual(new Uint8Array((await storage.get('a/b.gz')) ?? []), data);
    assert.equal(await storage.get('a/c.gz'), undefined);
  },
  async 'a second put replaces the data, unless ifAbsent is set'(storage) {
    await storage.put('a', bytes('1'));
    assert.equal(await storage.put('a', bytes('2')), true);
    assert.equal(await storage.put('a', bytes('3'), { ifAbsent: true }), false);
    assert.equal(textOf(await storage.get('a')), '2');
    assert.equal(await storage.put('b', bytes('4'), { ifAbsent: true }), true);
  },
  async 'exactly one of several concurrent puts with ifAbsent succeeds'(storage) {
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, n) => storage.put('a', bytes(`${n}`), { ifAbsent: true })),
    );
    assert.equal(all.filter(Boolean).length, 1);
    assert.equal(textOf(await storage.get('a')), `${all.indexOf(true)}`);
  },
  async 'lists names by prefix in order, including many names and unusual ones'(storage) {
    const names = Array.from({ length: 12 }, (_, n) => `x/${String(n).padStart(2, '0')}.json`);
    const odd = "y/a b&c<d>'%2E+ü.json";
    for (const name of [...names.toReversed(), odd]) await storage.put(name, bytes('x'));
    assert.deepEqual(await Array.fromAsync(storage.list('x/')), names);
    assert.deepEqual(await Array.fromAsync(storage.list('y/')), [odd]);
    assert.deepEqual(await Array.fromAsync(storage.list('')), [...names, odd]);
    assert.deepEqual(await Array.fromAsync(storage.list('z/')), []);
  },
  async 'removes data, and removing twice is harmless'(storage) {
    await storage.put('a', bytes('1'));
    await storage.remove('a');
    await storage.remove('a');
    assert.equal(await storage.get('a'), undefined);
  },
};

/**
 * The cases, for any test runner.
 *
 * @example
 * import { test } from 'node:test';
 * import { fileColdStorage } from 'millrace/bus';
 * import { coldStorageConformance } from 'millrace/testing';
 *
 * for (const { name, run } of coldStorageConformance(async () => fileColdStorage('empty'))) {
 *   test(name, run);
 * }
 */
export function coldStorageConformance(
  /** Returns an empty instance each time. */
  open: () => Promise<ColdStorage>,
): readonly ColdStorageCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    run: async () => run(await open()),
  }));
}

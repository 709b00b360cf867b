// The conformance suite of key claims: cases for any test runner.

import assert from 'node:assert/strict';
import type { KeyClaims, KeyUse } from '../../../aggregates/idempotency.ts';

export interface KeyClaimsCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/**
 * The suite over one implementation; `open` is asked once per case, and keys are fresh in each.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { keyClaimsConformance } from 'millrace/testing';
 * import { test } from 'node:test';
 *
 * for (const { name, run } of keyClaimsConformance(async () => openMemory().keyClaims)) test(name, run);
 */
export function keyClaimsConformance(
  open: () => Promise<KeyClaims & Partial<AsyncDisposable>>,
): readonly KeyClaimsCase[] {
  const each = (
    name: string,
    body: (claims: KeyClaims, key: string) => Promise<void>,
  ): KeyClaimsCase => ({
    name,
    async run() {
      const claims = await open();
      try {
        await body(claims, `core|banking|deposit|${crypto.randomUUID()}`);
      } finally {
        await claims[Symbol.asyncDispose]?.();
      }
    },
  });

  return [
    each('claims a free key for its use', async (claims, key) => {
      assert.deepEqual(await claims.claim(key, useOf('a1')), useOf('a1'));
    }),

    each('the same use can claim the key again', async (claims, key) => {
      await claims.claim(key, useOf('a1'));
      assert.deepEqual(await claims.claim(key, useOf('a1')), useOf('a1'));
    }),

    each('another use gets the holder of the key', async (claims, key) => {
      await claims.claim(key, useOf('a1'));
      assert.deepEqual(await claims.claim(key, useOf('a2')), useOf('a1'));
      assert.deepEqual(await claims.claim(`${key}|2`, useOf('a2')), useOf('a2'));
    }),

    each('of concurrent uses one gets the key, and all get its holder', async (claims, key) => {
      const uses = Array.from({ length: 20 }, (_, index) => useOf(`a${index}`));
      const answers = await Promise.all(uses.map((use) => claims.claim(key, use)));
      assert.equal(new Set(answers.map(({ stream }) => stream)).size, 1);
    }),
  ];
}

function useOf(id: string): KeyUse {
  return { stream: `banking.account.v1-core-${id}`, command: 'account.deposit' };
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createLedger } from './ledger.ts';

test('upTo is the number up to which everything is done, in any order of completion', () => {
  const order = fc.shuffledSubarray(
    Array.from({ length: 50 }, (_, index) => index),
    { minLength: 50, maxLength: 50 },
  );
  fc.assert(
    fc.property(order, (done) => {
      const ledger = createLedger(-1);
      const slots = done.map((_, at) => ledger.open(at));
      const finished = new Set<number>();
      for (const at of done) {
        const slot = slots[at];
        if (slot !== undefined) ledger.done(slot);
        finished.add(at);
        let expected = -1;
        while (finished.has(expected + 1)) expected += 1;
        assert.equal(ledger.upTo, expected);
        assert.equal(ledger.completed, expected + 1);
      }
    }),
  );
});

test('frees the memory of done slots', () => {
  const ledger = createLedger(0);
  for (let at = 1; at <= 5_000; at += 1) ledger.done(ledger.open(at));
  assert.deepEqual([ledger.upTo, ledger.completed], [5_000, 5_000]);
});

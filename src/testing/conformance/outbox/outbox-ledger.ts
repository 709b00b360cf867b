// The conformance suite of outbox ledgers: cases for any test runner.

import { claimCases, orderCases, sharedCases } from './claim.ts';
import { enqueueCases, outageCases, transactionCases } from './enqueue.ts';
import type { LedgerCases, OutboxLedgerCase, OutboxLedgerFixture } from './fixture.ts';
import { operatorCases } from './operators.ts';
import { modelCases } from './model.ts';
import type { OutboxCapabilities } from '../../../outbox/outbox-ledger.ts';
import { renewCases } from './renew.ts';
import { operatingCases, settleCases } from './settle.ts';

export type { OpenedLedger, OutboxLedgerCase, OutboxLedgerFixture } from './fixture.ts';

const topics: readonly {
  readonly topic: string;
  readonly needs?: readonly (keyof OutboxCapabilities)[];
  readonly cases: LedgerCases;
}[] = [
  { topic: 'enqueue', cases: enqueueCases },
  { topic: 'transactions', needs: ['callerTransaction'], cases: transactionCases },
  { topic: 'database', needs: ['durable'], cases: outageCases },
  { topic: 'claims', cases: claimCases },
  { topic: 'order', cases: orderCases },
  { topic: 'several processes', needs: ['crossProcess'], cases: sharedCases },
  { topic: 'renewal', cases: renewCases },
  { topic: 'outcomes', cases: settleCases },
  { topic: 'operating', cases: operatingCases },
  { topic: 'operators', cases: operatorCases },
  { topic: 'model', cases: modelCases },
];

/**
 * The cases, for any test runner.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { test } from 'node:test';
 * import { outboxLedgerConformance } from 'millrace/testing';
 *
 * const capabilities = openMemory().outbox.capabilities;
 * const open = async () => ({ ledger: openMemory().outbox });
 * for (const { name, skip, run } of outboxLedgerConformance<never>({ capabilities, open })) {
 *   test(name, { skip: skip ?? false }, run);
 * }
 */
export function outboxLedgerConformance<Transaction>(
  fixture: OutboxLedgerFixture<Transaction>,
): readonly OutboxLedgerCase[] {
  return topics.flatMap(({ topic, needs = [], cases }) => {
    const missing = needs.filter((need) => !fixture.capabilities[need]);
    return Object.entries(cases).map(([title, run]) => ({
      name: `${topic}: ${title}`,
      skip: missing.length === 0 ? undefined : `needs ${missing.join(', ')}`,
      async run() {
        const opened = await fixture.open();
        try {
          // The cases only pass transactions through.
          await run(opened as never, opened.ledger as never);
        } finally {
          await opened.ledger[Symbol.asyncDispose]();
          await opened.close?.();
        }
      },
    }));
  });
}

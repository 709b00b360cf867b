// A process that claims until nothing is left, and tells what it got.

import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openLedger, type LedgerPlace } from './open-ledger.ts';

export interface ClaimerMessage {
  readonly kind: 'ready' | 'done';
  readonly ids?: readonly string[];
}

const place = childInput() as LedgerPlace;
const ledger = await openLedger(place);
tellParent({ kind: 'ready' } satisfies ClaimerMessage);
process.once('message', () => void claimAll());

async function claimAll(): Promise<void> {
  const ids: string[] = [];
  // An empty answer may only mean that others have locked what is left.
  for (let empty = 0; empty < 5;) {
    const claimed = await ledger.claimDueBatch(`w${process.pid}`, 50, { leaseMs: 600_000 });
    ids.push(...claimed.map(({ id }) => id));
    empty = claimed.length === 0 ? empty + 1 : 0;
  }
  tellParent({ kind: 'done', ids } satisfies ClaimerMessage);
  await ledger[Symbol.asyncDispose]();
  process.channel?.unref();
}

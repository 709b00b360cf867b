// A process that claims one batch, waits, claims the rest, and reports the ids.

import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openLedger, type LedgerAddress } from './open-ledger.ts';

export interface ClaimerMessage {
  readonly kind: 'ready' | 'first' | 'done';
  readonly ids?: readonly string[] | undefined;
}

const address = childInput() as LedgerAddress;
const ledger = await openLedger(address);
tellParent({ kind: 'ready' } satisfies ClaimerMessage);
const ids: string[] = [];
process.once('message', () => {
  process.once('message', () => void claimAll());
  void claim().then(() => tellParent({ kind: 'first' } satisfies ClaimerMessage));
});

async function claim(): Promise<number> {
  const claimed = await ledger.claimDueBatch(`w${process.pid}`, 50, { leaseMs: 600_000 });
  ids.push(...claimed.map(({ id }) => id));
  return claimed.length;
}

async function claimAll(): Promise<void> {
  // An empty batch can mean that other processes have locked the remaining messages.
  for (let empty = 0; empty < 5;) empty = (await claim()) === 0 ? empty + 1 : 0;
  tellParent({ kind: 'done', ids } satisfies ClaimerMessage);
  await ledger[Symbol.asyncDispose]();
  process.channel?.unref();
}

// A process that archives until nothing is left, or until it is killed.

import { archiveOutbox } from '../../src/platform/transfer/archive-outbox.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openLedger, type LedgerAddress } from './open-ledger.ts';

export interface ArchiverInput extends LedgerAddress {
  readonly path: string;
}

const input = childInput() as ArchiverInput;
await using ledger = await openLedger(input);
let batches = 0;
// Small batches give a kill many steps to hit.
const small: Pick<typeof ledger, 'archive'> = {
  archive: async (sentBefore, keep) => {
    let archived = 0;
    while (archived < 1_000) {
      const count = await ledger.archive(sentBefore, keep, 10);
      archived += count;
      batches += 1;
      tellParent(batches);
      if (count < 10) break;
    }
    return archived;
  },
};
await archiveOutbox(small, input.path, { sentBefore: new Date(Date.now() + 3_600_000) });
tellParent('done');
process.channel?.unref();

// Sent messages from the ledger into a file, and only then out of the ledger.

import { outboxLimits } from '../../outbox/outbox-limits.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { openArchiveFile } from './archive-file.ts';

export interface ArchiveOutboxOptions {
  readonly sentBefore: Date;
  readonly signal?: AbortSignal;
  /** After each batch: how many have been archived so far. */
  readonly onProgress?: (archived: number) => void;
}

/**
 * Moves sent messages into a file, one line of JSON each, compressed when its name ends in `.gz`. A file
 * that is an archive already is gone on with. No message leaves the ledger before it is synced to the disk;
 * whoever is killed in between writes up to one batch again.
 *
 * @example
 * import { archiveOutbox, openOutboxLedger } from 'millrace/platform';
 *
 * await using ledger = await openOutboxLedger('postgres://localhost/shop');
 * const sentBefore = new Date(Date.now() - 30 * 86_400_000);
 * console.log(await archiveOutbox(ledger, 'sent-2026.ndjson.gz', { sentBefore }));
 */
export async function archiveOutbox(
  ledger: Pick<OutboxLedger, 'archive'>,
  path: string,
  { sentBefore, signal, onProgress }: ArchiveOutboxOptions,
): Promise<number> {
  await using file = await openArchiveFile(path);
  let archived = 0;
  for (;;) {
    signal?.throwIfAborted();
    const count = await ledger.archive(
      sentBefore,
      (messages) =>
        file.append(
          messages.map(({ id, ...rest }) => `${JSON.stringify({ id, ...rest })}\n`).join(''),
        ),
      outboxLimits.purgeBatchDefault,
    );
    archived += count;
    onProgress?.(archived);
    if (count < outboxLimits.purgeBatchDefault) return archived;
  }
}

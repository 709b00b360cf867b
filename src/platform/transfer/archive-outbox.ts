// Moves sent messages from the ledger to a file.

import { outboxLimits } from '../../outbox/outbox-limits.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { openArchiveFile } from './archive-file.ts';

export interface ArchiveOutboxOptions {
  readonly sentBefore: Date;
  readonly signal?: AbortSignal | undefined;
  /** Called after each batch with the number of archived messages so far. */
  readonly onProgress?: ((archived: number) => void) | undefined;
}

/**
 * Moves sent messages to a file, one line of JSON each, compressed if its name ends in `.gz`. An existing archive is
 * continued. A message is removed from the ledger after it is synced to disk; after a crash up to one batch is
 * written again.
 *
 * @example
 * import { openPostgres } from 'millrace/engines/postgres';
 * import { archiveOutbox } from 'millrace/platform';
 *
 * await using db = await openPostgres('postgres://localhost/shop');
 * const sentBefore = new Date(Date.now() - 30 * 86_400_000);
 * console.log(await archiveOutbox(db.outbox, 'sent-2026.ndjson.gz', { sentBefore }));
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

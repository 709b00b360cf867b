// Messages for readers that keep little of each: payloads may be large, so few of them are in memory at the same time.

import type { OutboxFilter, OutboxLedger } from './outbox-ledger.ts';
import type { OutboxMessage } from './outbox-message.ts';

const pageSize = 100;
/** With 2 bytes per character, what a request reserves for a page. */
const pageChars = 4_194_304;

/** Page by page, oldest first; at most `countMax` messages. */
export async function* messagePages(
  ledger: Pick<OutboxLedger, 'list'>,
  filter: OutboxFilter,
  countMax = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<readonly OutboxMessage[]> {
  let after: string | undefined;
  for (let left = countMax; left > 0;) {
    const limit = Math.min(pageSize, left);
    const bound = { limit, after, oldestFirst: true, charsMax: pageChars };
    const page = await ledger.list(filter, bound);
    if (page.length === 0) return;
    yield page;
    left -= page.length;
    after = page.at(-1)?.id;
  }
}

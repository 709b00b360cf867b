// Lists whose items may be large: small reads of the store, until the page is long or large enough.

import { textBytes } from './follow.ts';

/**
 * Items per read. It does not grow after small items: large ones may follow them, and a whole read is in memory before its
 * size is known.
 */
const readItems = 16;
/** The size in memory at which a page ends. */
const pageBytes = 2_097_152;

interface Listed<Item> {
  readonly items: readonly Item[];
  readonly cursor?: string | undefined;
}

/** Returns a page whose cursor continues after its last item. */
export async function listPage<Item>(
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
  read: (page: {
    readonly limit: number;
    readonly cursor: string | undefined;
  }) => Promise<Listed<Item>>,
): Promise<Listed<Item>> {
  const items: Item[] = [];
  let next = cursor;
  let bytes = 0;
  do {
    const found = await read({ limit: Math.min(readItems, limit - items.length), cursor: next });
    items.push(...found.items);
    bytes += textBytes(JSON.stringify(found.items));
    next = found.cursor;
  } while (next !== undefined && items.length < limit && bytes < pageBytes);
  return { items, cursor: next };
}

// Lists whose items may be large: small reads of the store, until the page is long or large enough.

import { jsonText } from '../../foundation/parse-json.ts';
import type { ListPage, PageBound, PartBound } from '../../platform/modules/route.ts';

/**
 * Items per read. It does not grow after small items: large ones may follow them, and a whole read is in memory before its
 * size is known.
 */
const readItems = 16;
/** The size in memory at which a page ends. */
export const pageBytes = 2_097_152;
/** The size at which the store ends a read: its rows, values and text must fit into the memory that is reserved for a page. */
const readBytes = 1_048_576;

/** Returns a page whose cursor continues after its last item. */
export async function listPage<Item>(
  { limit, cursor }: PageBound,
  read: (part: PartBound) => Promise<ListPage<Item>>,
): Promise<ListPage<Item>> {
  const items: Item[] = [];
  let next = cursor;
  let bytes = 0;
  let hasMore: boolean;
  do {
    const size = Math.min(readItems, limit - items.length);
    const found = await read({ limit: size, cursor: next, bytesMax: readBytes });
    items.push(...found.items);
    bytes += textBytes(jsonText(found.items));
    next = found.cursor;
    // A list that filters its items ends a read early, after it has looked at enough of them.
    hasMore = next !== undefined && found.items.length === size;
  } while (hasMore && items.length < limit && bytes < pageBytes);
  return { items, cursor: next };
}

/** A character of a string may need two bytes. */
export function textBytes(text: string): number {
  return 2 * text.length;
}

// Pages of lists, `{ items, cursor }`: in queries and in the HTTP API.

import { Type } from 'millrace/contracts';
import type { JsonResponse } from 'millrace/platform';
import type { Found, Page } from 'millrace/projections';
import type { TObject, TSchema } from 'typebox';
import { invalid } from './web/collab-errors.ts';

export interface PageRequest {
  readonly tenant: string;
  /** Default: `pageLimits.default`. */
  readonly limit?: number | undefined;
  /** `cursor` of the previous page. */
  readonly cursor?: string | undefined;
}

export const pageLimits = { default: 50, max: 200 } as const;

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: pageLimits.max,
      description: `Default: ${pageLimits.default}.`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 1_000, description: '`cursor` of the previous page.' }),
  ),
};

export function pageSchema(item: TSchema): TObject {
  return Type.Object({
    items: Type.Array(item),
    cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
  });
}

export function pageResponse<Document>(
  { items, cursor }: Page<Document>,
  toItem: (document: Document) => unknown = (document) => document,
): JsonResponse & { readonly body: object } {
  return { body: { items: items.map(({ document }) => toItem(document)), cursor } };
}

/** A page of a list that one document holds; its cursor is the id of the last item. */
export function pageOfList<Item>(
  list: readonly Item[],
  { limit = pageLimits.default, cursor }: { readonly limit?: number; readonly cursor?: string },
  idOf: (item: Item) => string,
): JsonResponse {
  const index = cursor === undefined ? -1 : list.findIndex((item) => idOf(item) === cursor);
  if (cursor !== undefined && index === -1) {
    throw invalid('cursor', `Invalid cursor "${cursor.slice(0, 60)}".`);
  }
  const items = list.slice(index + 1, index + 1 + limit);
  const last = items.at(-1);
  const hasMore = index + 1 + limit < list.length && last !== undefined;
  return { body: { items, cursor: hasMore ? idOf(last) : undefined } };
}

/** A page of the documents that match. A short page may still have a cursor, because the query reads at most `readMax`. */
export async function filteredPage<Document extends object>(
  { limit = pageLimits.default, cursor: first }: Omit<PageRequest, 'tenant'>,
  readMax: number,
  read: (page: {
    readonly limit: number;
    readonly cursor: string | undefined;
  }) => Promise<Page<Document>>,
  matches: (found: Found<Document>) => boolean,
): Promise<Page<Document>> {
  const items: Found<Document>[] = [];
  let cursor = first;
  for (let seen = 0; seen < readMax;) {
    // Read no more than the page still needs: the cursor points after the last document read.
    const missing = limit - items.length;
    seen += missing;
    const page = await read({ limit: missing, cursor });
    items.push(...page.items.filter(matches));
    ({ cursor } = page);
    if (cursor === undefined || items.length === limit) break;
  }
  return { items, cursor };
}

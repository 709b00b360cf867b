// Lists page by page: `{ data, pagination: { nextCursor, hasMore } }`.

import { Type } from 'millrace/contracts';
import type { JsonAnswer } from 'millrace/platform';
import type { TObject, TSchema } from 'typebox';
import { invalid } from './collab-errors.ts';

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
    Type.String({ maxLength: 1_000, description: '`nextCursor` of the page before.' }),
  ),
};

export function pageSchema(item: TSchema): TObject {
  return Type.Object({
    data: Type.Array(item),
    pagination: Type.Object({
      nextCursor: Type.Union([Type.String(), Type.Null()]),
      hasMore: Type.Boolean(),
    }),
  });
}

export function pageAnswer(
  data: readonly unknown[],
  cursor: string | undefined,
  more: object = {},
): JsonAnswer {
  return {
    body: {
      data,
      pagination: { nextCursor: cursor ?? null, hasMore: cursor !== undefined },
      ...more,
    },
  };
}

/** Of a list that is in one document: the cursor is the id of the last one that was given out. */
export function pageOfList<Item>(
  items: readonly Item[],
  { limit = pageLimits.default, cursor }: { readonly limit?: number; readonly cursor?: string },
  idOf: (item: Item) => string,
): JsonAnswer {
  const at = cursor === undefined ? -1 : items.findIndex((each) => idOf(each) === cursor);
  if (cursor !== undefined && at === -1) throw invalid('cursor', 'this is no cursor of this list');
  const data = items.slice(at + 1, at + 1 + limit);
  const last = data.at(-1);
  const hasMore = at + 1 + limit < items.length && last !== undefined;
  return pageAnswer(data, hasMore ? idOf(last) : undefined);
}

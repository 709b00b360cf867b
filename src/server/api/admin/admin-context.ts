// Shared by the admin routes: the audit, and common parts of requests and responses.

import type { TObject, TProperties, TSchema } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { jsonText } from '../../../foundation/parse-json.ts';
import type { AuditLog, AuditRecord } from '../../../platform/audit-log.ts';
import { tokenLimits } from '../../../platform/tokens/token.ts';
import type { ApiRequest, ListPage, ReaderMemory, Route } from '../../../platform/modules/route.ts';
import type { ApiPlatform } from '../api-context.ts';

export interface AdminContext {
  readonly platform: ApiPlatform;
  readonly audit: AuditLog;
}

type Caller = Pick<ApiRequest, 'address' | 'principal' | 'requestId'>;

/** The admin routes under `/api/v1` as well; the reference shows them once. */
export function adminAliases(routes: readonly Route[]): readonly Route[] {
  return routes
    .filter(({ path }) => path.startsWith('/admin/'))
    .map((each) => ({ ...each, path: `/api/v1${each.path}` }));
}

/** Executes an admin action and records the actor, the target and the outcome. */
export async function audited<T>(
  { audit }: AdminContext,
  request: Caller,
  what: { readonly action: string; readonly target: string },
  work: (record: AuditRecord) => Promise<T>,
): Promise<T> {
  const { principal, address, requestId } = request;
  const { kind = 'anonymous', name = '', tenant } = principal ?? {};
  const actor = { kind, name, address, ...(tenant === undefined ? {} : { tenant }) };
  return audit.run({ ...what, actor, requestId }, work);
}

/** A route that lists something that all tenants share. */
export function globalList({
  list,
  ...definition
}: Omit<Route, 'handle'> & {
  readonly list: (request: ApiRequest) => Promise<readonly unknown[]>;
}): Route {
  return {
    ...definition,
    isGlobal: true,
    handle: async (request) => ({ body: { items: await list(request) } }),
  };
}

/** Returns the name of the caller, which is stored with the change. */
export function actorName({ principal }: Pick<ApiRequest, 'principal'>): string {
  return (principal?.name ?? '').slice(0, tokenLimits.byCharsMax);
}

/** The filter of a bulk action. An action on everything must be explicit: an empty filter needs `all: true`. */
export function bulkFilter<Body extends { readonly all?: boolean }>(
  { all, ...filter }: Body,
  parts: string,
): Omit<Body, 'all'> {
  if (Object.keys(filter).length > 0 !== (all === true)) return filter;
  throw new MillraceError('REQUEST_INVALID', `send either ${parts} or all: true`, {
    details: { field: 'all' },
  });
}

export function timeOf(field: string, given: string): Date;
export function timeOf(field: string, given: string | undefined): Date | undefined;
export function timeOf(field: string, given: string | undefined): Date | undefined {
  if (given === undefined) return undefined;
  const at = new Date(given);
  // Databases reject years with six digits.
  if (Number.isFinite(at.getTime()) && /^\d{4}-/.test(at.toISOString())) return at;
  throw new MillraceError(
    'REQUEST_INVALID',
    `${field} is not a date and time: '${given.slice(0, 40)}'`,
    {
      details: { field },
    },
  );
}

export const uuid = Type.String({
  pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  description: 'A UUID',
});

/** A string without NUL characters, which databases reject. */
export function text(charsMax: number, description?: string): ReturnType<typeof Type.String> {
  return Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: '^[^\\u0000]*$',
    ...(description === undefined ? {} : { description }),
  });
}

/** Why something failed (`FailureCause`). */
export const failureCauseSchema = closed({
  name: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
  stack: Type.Optional(Type.String({ description: 'The frames, without messages.' })),
  fingerprint: Type.String({ description: 'Equal for failures of one cause.' }),
});

export const time = text(40, 'A date and time, ISO 8601');

export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default: 100.' })),
  cursor: Type.Optional(text(400, 'The cursor of the previous page.')),
};

/** The query of lists whose cursor is an id. */
export const idPageQuery = { ...pageQuery, cursor: Type.Optional(uuid) };

interface PageQuery {
  readonly limit: number | undefined;
  readonly cursor: string | undefined;
}

/** Dead letters have whole events. As many of them as fit into the memory that is reserved for a page are read at once. */
const readItems = 4;
/** The characters after which a part of a page ends, whatever its limit. */
const readCharsMax = 1_048_576;

/** Returns one page. After a full read there may be another item; the cursor is the key of the last item. */
export async function pageBy<Item>(
  memory: Pick<ReaderMemory, 'page'>,
  { limit: pageLimit = 100, cursor: first }: PageQuery,
  list: (page: {
    readonly limit: number;
    readonly after: string | undefined;
    readonly charsMax: number;
  }) => Promise<readonly Item[]>,
  keyOf: (item: Item) => string,
): Promise<{ readonly body: ListPage<Item> }> {
  const body = await memory.page({ limit: pageLimit, cursor: first }, async ({ limit, cursor }) => {
    const items: Item[] = [];
    let after = cursor;
    let chars = 0;
    let hasMore: boolean;
    do {
      const size = Math.min(readItems, limit - items.length);
      const found = await list({ limit: size, after, charsMax: readCharsMax });
      items.push(...found);
      chars += jsonText(found).length;
      const last = found.at(-1);
      hasMore = found.length === size || chars >= readCharsMax;
      after = last === undefined || !hasMore ? undefined : keyOf(last);
    } while (hasMore && items.length < limit && chars < readCharsMax);
    return { items, cursor: after };
  });
  return { body };
}

export const idOf = ({ id }: { readonly id: string }): string => id;

/** The jobs, messages or dead letters of a bulk action. */
export const idsField = Type.Optional(Type.Array(uuid, { minItems: 1, maxItems: 500 }));

export function pageOf(item: TSchema): TObject {
  return closed({ items: Type.Array(item), cursor: Type.Optional(Type.String()) });
}

/** An object schema without additional properties: a misspelled filter would match everything. */
export function closed<Properties extends TProperties>(
  properties: Properties,
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}

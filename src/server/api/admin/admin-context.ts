// What the routes for administrators share: the audit, whose data a caller may touch, and the parts of
// their inputs and answers that are everywhere the same.

import type { TObject, TProperties, TSchema } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { AuditLog } from '../../../platform/audit-log.ts';
import { tokenLimits } from '../../../platform/tokens/token.ts';
import type { ApiRequest, Route } from '../../../platform/modules/route.ts';
import type { ApiPlatform } from '../api-context.ts';

export interface AdminContext {
  readonly platform: ApiPlatform;
  readonly audit: AuditLog;
}

type Asking = Pick<ApiRequest, 'address' | 'principal' | 'requestId'>;

/** The same routes under `/api/v1` as well; the reference shows them once. */
export function adminAliases(routes: readonly Route[]): readonly Route[] {
  return routes
    .filter(({ path }) => path.startsWith('/admin/'))
    .map((each) => ({ ...each, path: `/api/v1${each.path}` }));
}

/** Does it, on record: who asked for what, and what came of it. */
export async function audited<T>(
  { audit }: AdminContext,
  request: Asking,
  what: { readonly action: string; readonly target: string },
  work: () => Promise<T>,
): Promise<T> {
  const { principal, address, requestId } = request;
  const { kind = 'anonymous', name = '', tenant } = principal ?? {};
  const actor = { kind, name, address, ...(tenant === undefined ? {} : { tenant }) };
  return audit.run({ ...what, actor, requestId }, work);
}

/** Who asks, for the record of what is changed. */
export function askedBy({ principal }: Pick<ApiRequest, 'principal'>): string {
  return (principal?.name ?? '').slice(0, tokenLimits.byCharsMax);
}

/** What belongs to no tenant is for administrators of all of them. */
export function checkGlobal({ principal }: Pick<ApiRequest, 'principal'>): void {
  if (principal?.tenant === undefined) return;
  throw new MillraceError('NOT_ALLOWED', 'this is for administrators of all tenants', {
    details: { tenant: principal.tenant },
  });
}

/** The tenant that is asked for, if the caller may see it; the caller's own, if it is bound to one. */
export function tenantWithin(
  { principal }: Pick<ApiRequest, 'principal'>,
  asked: string | undefined,
): string | undefined {
  const own = principal?.tenant;
  if (own === undefined || asked === undefined || asked === own) return own ?? asked;
  throw new MillraceError('NOT_ALLOWED', 'the credentials belong to another tenant', {
    details: { field: 'tenant' },
  });
}

/** Whether something of this tenant is within the caller's reach. */
export function isWithin(
  { principal }: Pick<ApiRequest, 'principal'>,
  tenant: string | undefined,
): boolean {
  return principal?.tenant === undefined || principal.tenant === tenant;
}

/** A filter that leaves everything must be meant: it is said. */
export function checkChosen(
  body: { readonly all?: boolean },
  isChosen: boolean,
  parts: string,
): void {
  if (isChosen !== (body.all === true)) return;
  throw new MillraceError('REQUEST_INVALID', `say ${parts}, or all: true, and not both`, {
    details: { field: 'all' },
  });
}

export function timeOf(field: string, given: string): Date {
  const at = new Date(given);
  // Databases have no years of six digits.
  if (Number.isFinite(at.getTime()) && /^\d{4}-/.test(at.toISOString())) return at;
  throw new MillraceError('REQUEST_INVALID', `${field} is no date and time`, {
    details: { field },
  });
}

export const uuid = Type.String({
  pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  description: 'An id',
});

/** Such as every database takes. */
export function text(charsMax: number, description?: string): ReturnType<typeof Type.String> {
  return Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: '^[^\\u0000]*$',
    ...(description === undefined ? {} : { description }),
  });
}

export const time = text(40, 'A date and time, ISO 8601');

export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default: 100.' })),
  cursor: Type.Optional(text(400, 'Of the page before.')),
};

const limitDefault = 100;

/** Where the cursor is an id. */
export const idPageQuery = { ...pageQuery, cursor: Type.Optional(uuid) };

/** As many as are asked for; a full page may have another one behind it, whose cursor is its last key. */
export async function pageBy<Item>(
  {
    limit = limitDefault,
    cursor,
  }: { readonly limit: number | undefined; readonly cursor: string | undefined },
  list: (page: { readonly limit: number; readonly after?: string }) => Promise<readonly Item[]>,
  keyOf: (item: Item) => string,
): Promise<{ readonly body: { readonly items: readonly Item[]; readonly cursor?: string } }> {
  const items = await list({ limit, ...(cursor === undefined ? {} : { after: cursor }) });
  const last = items.length === limit ? items.at(-1) : undefined;
  return { body: { items, ...(last === undefined ? {} : { cursor: keyOf(last) }) } };
}

export const idOf = ({ id }: { readonly id: string }): string => id;

/** A bulk deed names so many at most. */
export const idsField = Type.Optional(Type.Array(uuid, { minItems: 1, maxItems: 500 }));

export function pageOf(item: TSchema): TObject {
  return closed({ items: Type.Array(item), cursor: Type.Optional(Type.String()) });
}

/** Nothing else: a filter with a typing error would be no filter. */
export function closed<Properties extends TProperties>(
  properties: Properties,
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}

// Tenants, the directory of them, and `<tenant>-<id>`, the last part of every stream name. A tenant that contains a
// hyphen can be separated from the id only if the directory lists it.

import { MillraceError } from '../foundation/error.ts';
import { idPattern, nameInvalid, nameLimits } from './identifier.ts';

/** Reports whether a tenant exists: a `Set`, a `Map` or a `TenantDirectory`. */
export interface TenantLookup {
  has(tenant: string): boolean;
}

export interface TenantDirectory extends TenantLookup, Iterable<string> {
  readonly size: number;
  /** Adds a tenant; throws `TENANT_OVERLAP` if it is a prefix of another tenant or the reverse. */
  add(tenant: string): void;
}

export const tenantPattern = '[a-z0-9]+(?:-[a-z0-9]+)*';
const tenantShape = new RegExp(`^${tenantPattern}$`);

export function checkTenant(tenant: string): void {
  if (tenant.length <= nameLimits.tenantCharsMax && tenantShape.test(tenant)) return;
  throw nameInvalid(
    'tenant',
    tenant,
    `must be lower-case letters and digits, separated by single hyphens, at most ${nameLimits.tenantCharsMax} characters`,
  );
}

/**
 * A directory of tenants in which no tenant is a prefix of another up to a hyphen: with both `demo`
 * and `demo-za`, the stream of tenant `demo` with id `za-1` could belong to either.
 *
 * @example
 * import { buildStreamName, createTenantDirectory, parseStreamName } from 'millrace/contracts';
 *
 * const tenants = createTenantDirectory(['core', 'demo-za']);
 * const stream = buildStreamName('banking', 'currency', 1, 'demo-za', 'USD', tenants);
 * console.log(parseStreamName(stream, tenants).tenant); // demo-za
 */
export function createTenantDirectory(initial: Iterable<string> = []): TenantDirectory {
  const known = new Set<string>();
  /** Proper prefix of a known tenant → one tenant with that prefix. */
  const prefixes = new Map<string, string>();

  const add = (tenant: string): void => {
    checkTenant(tenant);
    if (known.has(tenant)) return;
    const longer = prefixes.get(tenant);
    if (longer !== undefined) throw overlap(tenant, longer);
    const shorterPrefixes = properPrefixes(tenant);
    const shorter = shorterPrefixes.find((prefix) => known.has(prefix));
    if (shorter !== undefined) throw overlap(shorter, tenant);
    for (const prefix of shorterPrefixes) prefixes.set(prefix, tenant);
    known.add(tenant);
  };
  for (const tenant of initial) add(tenant);

  return {
    get size() {
      return known.size;
    },
    has: (tenant) => known.has(tenant),
    add,
    [Symbol.iterator]: () => known.values(),
  };
}

function properPrefixes(tenant: string): string[] {
  const parts = tenant.split('-');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('-'));
}

function overlap(shorter: string, longer: string): MillraceError {
  return new MillraceError(
    'TENANT_OVERLAP',
    `tenant '${shorter}' is a prefix of tenant '${longer}': some stream names could belong to either`,
    { details: { shorter, longer } },
  );
}

const tenantAndId = new RegExp(`^[a-z0-9]+-${idPattern}$`);

/** Throws if the result would parse back to another tenant. */
export function joinTenant(tenant: string, id: string, tenants?: TenantLookup): string {
  checkTenant(tenant);
  const joined = `${tenant}-${id}`;
  const parsedTenant = tenantOf(joined, tenants);
  if (parsedTenant !== tenant) throw misread(tenant, id, parsedTenant, tenants);
  return joined;
}

/** Undefined if the string is not `<tenant>-<id>`. */
export function splitTenant(
  joined: string,
  tenants?: TenantLookup,
): { readonly tenant: string; readonly id: string } | undefined {
  if (!tenantAndId.test(joined)) return undefined;
  const tenant = tenantOf(joined, tenants);
  return { tenant, id: joined.slice(tenant.length + 1) };
}

/** The longest known tenant, otherwise the part before the first hyphen. An id is never empty. */
function tenantOf(joined: string, tenants: TenantLookup | undefined): string {
  const first = joined.indexOf('-');
  if (tenants !== undefined) {
    let at = joined.lastIndexOf('-', joined.length - 2);
    for (; at > first; at = joined.lastIndexOf('-', at - 1)) {
      if (at > nameLimits.tenantCharsMax) continue;
      const candidate = joined.slice(0, at);
      if (tenants.has(candidate)) return candidate;
    }
  }
  return joined.slice(0, first);
}

function misread(
  tenant: string,
  id: string,
  parsedTenant: string,
  tenants: TenantLookup | undefined,
): MillraceError {
  if (tenants?.has(tenant) !== true && tenant.includes('-')) {
    return new MillraceError(
      'TENANT_UNKNOWN',
      `tenant '${tenant}' contains a hyphen and is not in the tenant directory: add the tenant, and pass the directory as \`tenants\``,
      { details: { tenant } },
    );
  }
  return new MillraceError(
    'STREAM_AMBIGUOUS',
    `tenant '${tenant}' with id '${id}' would parse as tenant '${parsedTenant}': choose another id`,
    { details: { tenant, id, readBack: parsedTenant } },
  );
}

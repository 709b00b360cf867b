// Tenants: whose data it is. A hyphen inside a tenant is safe only while a directory knows it.

import { MillraceError } from '../foundation/error.ts';
import { nameInvalid, nameLimits } from './identifier.ts';

/** Whatever can say whether a tenant exists: a `Set`, a `Map`, or the directory below. */
export interface TenantLookup {
  has(tenant: string): boolean;
}

export interface TenantDirectory extends TenantLookup, Iterable<string> {
  readonly size: number;
  /** Adds a tenant; one that begins another, or is begun by one, is refused. */
  add(tenant: string): void;
}

export const tenantPattern = '[a-z0-9]+(?:-[a-z0-9]+)*';
const tenantShape = new RegExp(`^${tenantPattern}$`);

export function checkTenant(tenant: string): void {
  if (tenant.length <= nameLimits.tenantCharsMax && tenantShape.test(tenant)) return;
  throw nameInvalid(
    'tenant',
    tenant,
    `must be lower-case letters and digits, parted by single hyphens, at most ${nameLimits.tenantCharsMax} characters`,
  );
}

/**
 * A directory of tenants in which none is the beginning of another up to a hyphen: with both
 * `demo` and `demo-za`, the stream of `demo` with the id `za-1` would belong to either.
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
  /** Every proper beginning of a known tenant, and one tenant that it begins. */
  const beginnings = new Map<string, string>();

  const add = (tenant: string): void => {
    checkTenant(tenant);
    if (known.has(tenant)) return;
    const longer = beginnings.get(tenant);
    if (longer !== undefined) throw overlap(tenant, longer);
    const starts = properBeginnings(tenant);
    const shorter = starts.find((start) => known.has(start));
    if (shorter !== undefined) throw overlap(shorter, tenant);
    for (const start of starts) beginnings.set(start, tenant);
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

function properBeginnings(tenant: string): string[] {
  const starts: string[] = [];
  for (let at = tenant.indexOf('-'); at !== -1; at = tenant.indexOf('-', at + 1)) {
    starts.push(tenant.slice(0, at));
  }
  return starts;
}

function overlap(shorter: string, longer: string): MillraceError {
  return new MillraceError(
    'TENANT_OVERLAP',
    `tenant '${shorter}' begins tenant '${longer}': some stream names could belong to either`,
    { details: { shorter, longer } },
  );
}

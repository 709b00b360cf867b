// `<tenant>-<id>`, the end of every stream name, put together and taken apart without mix-ups.

import { MillraceError } from '../foundation/error.ts';
import { idPattern, nameLimits } from './identifier.ts';
import { checkTenant, type TenantLookup } from './tenant.ts';

const shape = new RegExp(`^[a-z0-9]+-${idPattern}$`);

/** Refuses a pair that would read back as another tenant's. */
export function joinTenant(tenant: string, id: string, tenants?: TenantLookup): string {
  checkTenant(tenant);
  const joined = `${tenant}-${id}`;
  const readBack = tenantOf(joined, tenants);
  if (readBack !== tenant) throw misread(tenant, id, readBack, tenants);
  return joined;
}

/** `undefined` when the text has no tenant and id in it. */
export function splitTenant(
  joined: string,
  tenants?: TenantLookup,
): { readonly tenant: string; readonly id: string } | undefined {
  if (!shape.test(joined)) return undefined;
  const tenant = tenantOf(joined, tenants);
  return { tenant, id: joined.slice(tenant.length + 1) };
}

/** The longest known tenant wins; else the tenant ends at the first hyphen. An id is never empty. */
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
  readBack: string,
  tenants: TenantLookup | undefined,
): MillraceError {
  if (tenants?.has(tenant) !== true && tenant.includes('-')) {
    return new MillraceError(
      'TENANT_UNKNOWN',
      `tenant '${tenant}' holds a hyphen and is not in the tenant directory: add it, and pass the directory`,
      { details: { tenant } },
    );
  }
  return new MillraceError(
    'STREAM_AMBIGUOUS',
    `tenant '${tenant}' with id '${id}' would read as tenant '${readBack}': choose another id`,
    { details: { tenant, id, readBack } },
  );
}

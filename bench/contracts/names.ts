// Inputs of the naming cases: typical parts of names, from a fixed seed.

import type { Random } from '../random.ts';

export interface NameParts {
  readonly bc: string;
  readonly agg: string;
  readonly action: string;
  readonly v: number;
  readonly tenant: string;
  readonly id: string;
}

/** Single words, because the document's parser rejects the camelCase that hyphens become in a category. */
const contexts = [
  { bc: 'banking', agg: 'currency', actions: ['created', 'enabled', 'renamed'] },
  { bc: 'banking', agg: 'account', actions: ['opened', 'closed', 'limit-changed'] },
  { bc: 'paymenthub', agg: 'payment', actions: ['requested', 'completed', 'failed'] },
  { bc: 'paymenthub', agg: 'refund', actions: ['requested', 'paid-out'] },
  { bc: 'notification', agg: 'message', actions: ['queued', 'sent', 'delivery-failed'] },
  { bc: 'collab', agg: 'task', actions: ['created', 'status-changed', 'assigned'] },
  { bc: 'collab', agg: 'chat', actions: ['opened', 'message-posted', 'tags-parsed'] },
  { bc: 'lookup', agg: 'country', actions: ['imported'] },
] as const;
const plainTenants = ['core', 'acme', 'globex', 'initech', 'umbrella', 'demo1', 'hooli', 'wayne'];
const codes = ['USD', 'EUR', 'ZAR', 'GBP', 'JPY', 'CHF', 'NOK', 'AUD'];

export function createNameParts(
  random: Random,
  {
    count,
    tenants = plainTenants,
  }: { readonly count: number; readonly tenants?: readonly string[] },
): NameParts[] {
  return Array.from({ length: count }, () => {
    const { bc, agg, actions } = random.pick(contexts);
    return {
      bc,
      agg,
      action: random.pick<string>(actions),
      v: random.chance(0.9) ? 1 : 2,
      tenant: random.pick(tenants),
      id: createId(random),
    };
  });
}

/** `demo-za`, `acme-retail-eu`, …: no tenant is a prefix of another. */
export function createHyphenatedTenants(random: Random, count: number): string[] {
  const regions = ['za', 'eu', 'us', 'apac', 'retail-eu', 'retail-us', 'wholesale-za'];
  return Array.from(
    { length: count },
    (_item, index) => `customer${index.toString(36)}-${random.pick(regions)}`,
  );
}

/** Mostly UUIDs, as the document advises; some natural codes and prefixed ids. */
function createId(random: Random): string {
  if (random.chance(0.7)) return random.uuid();
  if (random.chance(0.5)) return random.pick(codes);
  return `${random.pick(['p', 'ord', 'cust_'])}-${random.below(1_000_000)}`;
}

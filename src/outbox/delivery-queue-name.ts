// Names of queues: BullMQ refuses the colon, so it is written as a tilde, and what would be taken for part of
// the name's own shape is escaped. Every name reads back to what it was made of.

import { decodeJobId, encodeJobId } from '../contracts/redis-keys.ts';

export interface DeliveryAddress {
  readonly integrationType: string;
  readonly tenantId?: string | undefined;
}

const start = 'outbox-';

/** `outbox-webhook~partner-x`, of a tenant `outbox-webhook~partner-x@core`. */
export function deliveryQueueName(
  { integrationType, tenantId = '' }: DeliveryAddress,
  perTenant: boolean,
): string {
  return `${start}${encode(integrationType)}${perTenant ? `@${encode(tenantId)}` : ''}`;
}

export function parseDeliveryQueueName(name: string): DeliveryAddress | undefined {
  if (!name.startsWith(start)) return undefined;
  const [type = '', tenant = ''] = name.slice(start.length).split('@');
  return {
    integrationType: decode(type),
    ...(tenant === '' ? {} : { tenantId: decode(tenant) }),
  };
}

/** `*` stands for any characters. */
export function fitsType(patterns: readonly string[], integrationType: string): boolean {
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('*');
    const last = rest.pop();
    if (last === undefined) return pattern === integrationType;
    if (!integrationType.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = integrationType.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return integrationType.length - last.length >= at && integrationType.endsWith(last);
  });
}

export function isPattern(type: string): boolean {
  return type.includes('*');
}

function encode(text: string): string {
  return encodeJobId(text).replaceAll('@', '%40').replaceAll('{', '%7B').replaceAll('}', '%7D');
}

function decode(text: string): string {
  return decodeJobId(text.replaceAll('%7D', '}').replaceAll('%7B', '{').replaceAll('%40', '@'));
}

// Windows of digests: as long as they are said to be, side by side since 1970, each with one digest for each key.

import { idFromKey } from '../foundation/ids.ts';

export interface DigestAddress {
  readonly tenant: string;
  readonly customerId: string;
  readonly key: string;
  readonly windowMs: number;
}

export interface DigestWindow {
  /** Of this customer, key and window: whoever opens it, it is the same one. */
  readonly digestId: string;
  readonly fromMs: number;
  /** Exclusive: what comes then belongs to the next. */
  readonly toMs: number;
}

/**
 * The window that a moment is in.
 *
 * @example
 * import { digestWindowAt } from 'millrace/customers';
 *
 * const hourly = { tenant: 'core', customerId: 'cust_1', key: 'sales', windowMs: 3_600_000 };
 * console.log(digestWindowAt(hourly, Date.parse('2026-11-16T10:20:00Z')).toMs); // 11:00
 */
export function digestWindowAt(address: DigestAddress, atMs: number): DigestWindow {
  const { tenant, customerId, key, windowMs } = address;
  const fromMs = Math.floor(atMs / windowMs) * windowMs;
  return {
    digestId: idFromKey(`digest ${tenant} ${customerId} ${windowMs} ${fromMs} ${key}`),
    fromMs,
    toMs: fromMs + windowMs,
  };
}

/** Digests of one key and several lengths are several digests. */
export function digestSlot({ key, windowMs }: Pick<DigestAddress, 'key' | 'windowMs'>): string {
  return `${windowMs} ${key}`;
}

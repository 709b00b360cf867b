// Digest windows: consecutive, of equal length, aligned to 1970; each window has one digest per key.

import { idFromKey } from 'millrace/foundation';

export interface DigestAddress {
  readonly tenant: string;
  readonly customerId: string;
  readonly key: string;
  readonly windowMs: number;
}

export interface DigestWindow {
  /** Derived from customer, key and window. */
  readonly digestId: string;
  readonly fromMs: number;
  /** The exclusive end of the window. */
  readonly toMs: number;
}

/**
 * The digest window that contains an instant.
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

/** Identifies an open digest within an inbox: one per key and window length. */
export function digestSlot({ key, windowMs }: Pick<DigestAddress, 'key' | 'windowMs'>): string {
  return `${windowMs} ${key}`;
}

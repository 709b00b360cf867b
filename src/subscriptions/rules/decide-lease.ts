// Lease rules: a shard has one owner at a time, for a limited time, with a token that grows with each
// owner. A write with an older token changes nothing.

/** A stored lease. */
export interface LeaseRow {
  readonly owner: string;
  readonly token: number;
  readonly expiresAtMs: number;
}

export type LeaseDecision =
  | { readonly kind: 'acquired'; readonly row: LeaseRow }
  | { readonly kind: 'held'; readonly retryInMs: number };

interface LeaseClaim {
  readonly owner: string;
  readonly nowMs: number;
  readonly ttlMs: number;
  /** A token known from another store; the new one is higher. */
  readonly above?: number | undefined;
}

/** Expiry time of a released lease. */
export const releasedAtMs = 0;

/** A free or expired lease goes to the claimant, even to its last owner, always with a new token. */
export function decideAcquire(current: LeaseRow | undefined, claim: LeaseClaim): LeaseDecision {
  const { owner, nowMs, ttlMs, above = 0 } = claim;
  if (current !== undefined && current.expiresAtMs > nowMs) {
    return { kind: 'held', retryInMs: current.expiresAtMs - nowMs };
  }
  const token = Math.max(current?.token ?? 0, above) + 1;
  return { kind: 'acquired', row: { owner, token, expiresAtMs: nowMs + ttlMs } };
}

/**
 * An expired lease can be renewed while no other process has acquired it. Undefined: the lease is lost or
 * released; a renewal that was already on its way must not restore a released lease.
 */
export function decideRenew(
  current: LeaseRow | undefined,
  { token, nowMs, ttlMs }: Pick<LeaseClaim, 'nowMs' | 'ttlMs'> & { readonly token: number },
): LeaseRow | undefined {
  if (current?.token !== token || current.expiresAtMs === releasedAtMs) return undefined;
  return { ...current, expiresAtMs: nowMs + ttlMs };
}

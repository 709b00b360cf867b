// Who owns a shard: one at a time, for a while, with a token that grows by each owner. A write that
// carries an older token changes nothing.

/** A lease as it is kept; a name that nobody ever held has none. */
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
  /** A token that was seen elsewhere: the new one is higher. */
  readonly above?: number | undefined;
}

/** When a lease that was given up expired: long ago. */
export const releasedAtMs = 0;

/** A free or expired lease goes to whoever asks, also to its last owner: always with a new token. */
export function decideAcquire(current: LeaseRow | undefined, claim: LeaseClaim): LeaseDecision {
  const { owner, nowMs, ttlMs, above = 0 } = claim;
  if (current !== undefined && current.expiresAtMs > nowMs) {
    return { kind: 'held', retryInMs: current.expiresAtMs - nowMs };
  }
  const token = Math.max(current?.token ?? 0, above) + 1;
  return { kind: 'acquired', row: { owner, token, expiresAtMs: nowMs + ttlMs } };
}

/**
 * Late is not lost: as long as nobody else took it, the token still is the newest. Undefined: lost,
 * or given up, which is for good: a renewal that was under way must not bring it back.
 */
export function decideRenew(
  current: LeaseRow | undefined,
  { token, nowMs, ttlMs }: Pick<LeaseClaim, 'nowMs' | 'ttlMs'> & { readonly token: number },
): LeaseRow | undefined {
  if (current?.token !== token || current.expiresAtMs === releasedAtMs) return undefined;
  return { ...current, expiresAtMs: nowMs + ttlMs };
}

/**
 * What the owner may rely on by its own clock: from before it asked, as the answer may have been
 * under way for long.
 */
export function mayRelyOn(
  lease: { readonly askedAtMs: number; readonly ttlMs: number },
  nowMs: number,
): boolean {
  return nowMs < lease.askedAtMs + lease.ttlMs;
}

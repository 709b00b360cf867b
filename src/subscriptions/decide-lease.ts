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
}

/** A free or expired lease goes to whoever asks, also to its last owner: always with a new token. */
export function decideAcquire(current: LeaseRow | undefined, claim: LeaseClaim): LeaseDecision {
  const { owner, nowMs, ttlMs } = claim;
  if (current !== undefined && current.expiresAtMs > nowMs) {
    return { kind: 'held', retryInMs: current.expiresAtMs - nowMs };
  }
  const token = (current?.token ?? 0) + 1;
  return { kind: 'acquired', row: { owner, token, expiresAtMs: nowMs + ttlMs } };
}

/**
 * Late is not lost: as long as nobody else took it, the token still is the newest. Undefined: lost.
 */
export function decideRenew(
  current: LeaseRow | undefined,
  { token, nowMs, ttlMs }: Omit<LeaseClaim, 'owner'> & { readonly token: number },
): LeaseRow | undefined {
  if (current === undefined || current.token !== token) return undefined;
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

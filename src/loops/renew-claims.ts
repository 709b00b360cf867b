// The heartbeat of claimed items: renews leases that have lasted for a third of their time, and reports lost ones.
// Items that end sooner cost nothing.

import { slept } from '../foundation/async/slept.ts';
import type { Clock } from '../foundation/clock.ts';

export interface ClaimLease {
  /** Whether the lease is valid by the clock of this process. */
  isCurrent(): boolean;
  /** The item is settled or given up: its lease is no longer renewed. */
  end(): void;
}

export interface ClaimRenewal<Item> {
  /**
   * `leasedAtMs`: taken before the claim was requested, so the lease ends no earlier than `leaseMs` later. `onLost` is
   * called at most once, never after `end`.
   */
  hold(item: Item, leasedAtMs: number, onLost: () => void): ClaimLease;
}

interface HeldClaim<Item> {
  readonly item: Item;
  readonly onLost: () => void;
  leasedAtMs: number;
}

/**
 * A claim is lost when `renew` says so, or when its lease ends by the own clock because calls of `renew` fail or hang.
 * A process that was suspended asks first: its claims may still be valid.
 */
export function renewClaims<Item>({
  clock,
  leaseMs,
  renew,
  signal,
}: {
  readonly clock: Clock;
  readonly leaseMs: number;
  /** Whether each claim is still valid. Undefined: leases are not renewed. */
  readonly renew: ((items: readonly Item[]) => Promise<readonly boolean[]>) | undefined;
  /** Ends the renewals. */
  readonly signal: AbortSignal;
}): ClaimRenewal<Item> {
  const held = new Set<HeldClaim<Item>>();
  const tickMs = Math.max(1, Math.floor(leaseMs / 6));
  let isRenewing = false;
  let hasFailed = false;

  function lose(claim: HeldClaim<Item>): void {
    if (held.delete(claim)) claim.onLost();
  }

  async function renewAll(
    claims: readonly HeldClaim<Item>[],
    call: NonNullable<typeof renew>,
  ): Promise<void> {
    const leasedAtMs = clock.now();
    isRenewing = true;
    try {
      const valid = await call(claims.map(({ item }) => item));
      hasFailed = false;
      for (const [at, claim] of claims.entries()) {
        if (valid[at] === true) claim.leasedAtMs = leasedAtMs;
        else lose(claim);
      }
    } catch {
      // The calls that claim and settle report the outage; the leases may last longer than it.
      hasFailed = true;
    } finally {
      isRenewing = false;
    }
  }

  function tick(call: NonNullable<typeof renew>): void {
    const nowMs = clock.now();
    const ageMs = (claim: HeldClaim<Item>): number => nowMs - claim.leasedAtMs;
    const old = [...held].filter((claim) => ageMs(claim) >= leaseMs / 3);
    if (isRenewing || hasFailed) {
      // One tick early: the next tick would come after the end of the lease.
      for (const claim of old) if (ageMs(claim) >= leaseMs - tickMs) lose(claim);
    }
    const left = old.filter((claim) => held.has(claim));
    if (left.length > 0 && !isRenewing) void renewAll(left, call);
  }

  async function run(call: NonNullable<typeof renew>): Promise<void> {
    while (!signal.aborted) {
      if (await slept(clock, tickMs, signal)) tick(call);
    }
  }

  if (renew !== undefined) void run(renew);
  return {
    hold(item, leasedAtMs, onLost) {
      const claim = { item, leasedAtMs, onLost };
      held.add(claim);
      return {
        isCurrent: () => clock.now() < claim.leasedAtMs + leaseMs,
        end: () => void held.delete(claim),
      };
    },
  };
}

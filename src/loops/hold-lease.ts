// Keeps one lease: renews it, gives it up by the clock of this process before it expires for others, and releases it.
// Only durations are compared, so clocks of processes and of the lease server may differ, but must run equally fast.

import { slept } from '../foundation/async/slept.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';

type Fenced<Key> = Key & { readonly token: number };

interface NotAcquired {
  readonly kind: 'held';
  readonly retryInMs: number;
}

interface Leases<Key> {
  acquire(
    key: Key,
    owner: string,
    ttlMs: number,
  ): Promise<{ readonly kind: 'acquired'; readonly token: number } | NotAcquired>;
  renew(fence: Fenced<Key>, ttlMs: number): Promise<boolean>;
  release(fence: Fenced<Key>): Promise<void>;
}

export interface HoldLeaseOptions<Key> {
  readonly key: Key;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Called once, and never after `release`. */
  readonly onLost: (fence: Fenced<Key>) => void;
}

export interface HeldLease<Key> {
  readonly kind: 'acquired';
  readonly fence: Fenced<Key>;
  /** Whether this process can rely on the lease now. */
  readonly isValid: boolean;
  /** Renews now, to learn of a loss before the next renewal, which follows a third of `ttlMs` after the last one. */
  renew(): Promise<void>;
  /** Also frees a lost lease, if the lease server still has it. Waits up to `ttlMs`. */
  release(): Promise<void>;
}

/** Acquires the lease and keeps it until it is lost or released. */
export async function holdLease<Key extends object>(
  leases: Leases<Key>,
  { key, owner, ttlMs, clock, observer, onLost }: HoldLeaseOptions<Key>,
): Promise<HeldLease<Key> | NotAcquired> {
  // The lease counts from its request, because the response may be slow.
  let requestedAtMs = clock.now();
  const acquired = await withinTime(leases.acquire(key, owner, ttlMs), {
    ms: ttlMs,
    late: (): NotAcquired => ({ kind: 'held', retryInMs: ttlMs }),
    clock,
  });
  if (acquired.kind === 'held') return acquired;
  const fence = { ...key, token: acquired.token };
  const ended = new AbortController();

  const isValid = (): boolean => !ended.signal.aborted && clock.now() < requestedAtMs + ttlMs;

  function lose(): void {
    if (ended.signal.aborted) return;
    ended.abort();
    onLost(fence);
  }

  async function renew(): Promise<void> {
    const atMs = clock.now();
    try {
      if (await leases.renew(fence, ttlMs)) requestedAtMs = Math.max(requestedAtMs, atMs);
      else lose();
    } catch (err) {
      // A later renewal may succeed before the lease expires.
      observer.log?.debug({ ...fence, err }, 'lease renewal failed');
    }
  }

  async function keep(): Promise<void> {
    let renewAtMs = requestedAtMs + ttlMs / 3;
    const nextMs = (): number => Math.min(renewAtMs, requestedAtMs + ttlMs) - clock.now();
    while (await slept(clock, nextMs(), ended.signal)) {
      if (!isValid()) return lose();
      if (clock.now() < renewAtMs) continue;
      renewAtMs = clock.now() + ttlMs / 3;
      // Without waiting, because the lease may expire before a response.
      void renew();
    }
  }

  void keep();
  return {
    kind: 'acquired',
    fence,
    get isValid() {
      return isValid();
    },
    renew,
    async release() {
      ended.abort();
      try {
        await withinTime(leases.release(fence), { ms: ttlMs, late: () => undefined, clock });
      } catch (err) {
        // The lease expires anyway.
        observer.log?.debug({ ...fence, err }, 'lease release failed');
      }
    },
  };
}

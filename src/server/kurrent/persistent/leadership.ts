// Elects the server that runs the persistent subscriptions of a database, with a lease. Only one server may run them,
// because messages in flight exist only in the memory of one process.

import type { Clock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { withinTime } from '../../../foundation/async/within-time.ts';
import type { Fence, LeaseStore } from '../../../subscriptions/subscription-storage.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Member {
  readonly address: Address;
  readonly isLeader: boolean;
}

export interface Leadership extends AsyncDisposable {
  /** Joins the election; resolves when its first result is known. */
  join(): Promise<void>;
  readonly leads: boolean;
  /** The known servers that take part. */
  readonly members: readonly Member[];
  /** Another server has written as the leader: gives up and joins the next election. */
  resign(): void;
}

export interface LeadershipOptions {
  readonly leases: LeaseStore;
  readonly address: () => Address;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
  /** The server leads when this has resolved. */
  readonly onElected: () => Promise<void>;
  readonly onLost: () => Promise<void>;
}

const key = { subscription: 'kurrent-server:persistent-subscriptions', shard: 0 } as const;

export function createLeadership(options: LeadershipOptions): Leadership {
  const { leases, clock, observer, ttlMs, onElected, onLost } = options;
  const id = createIds().next();
  const stopping = new AbortController();
  let fence: Fence | undefined;
  let leads = false;
  let members: readonly Member[] = [];
  let resigned = false;
  let wake: AbortController | undefined;
  let running: Promise<void> | undefined;
  let first: Promise<void> | undefined;

  /** Identifies this process and its address. */
  const owner = (): string => `${id} ${options.address().host} ${options.address().port}`;

  const elect = async (): Promise<number> => {
    const lease = await leases.acquire(key, owner(), ttlMs);
    if (lease.kind === 'held') return Math.min(lease.retryInMs + 1, ttlMs / 3);
    fence = { ...key, token: lease.token };
    resigned = false;
    observer.log?.info({ token: lease.token }, 'leadership of persistent subscriptions acquired');
    try {
      await onElected();
      leads = true;
    } catch (error) {
      await stepDown();
      throw error;
    }
    return ttlMs / 3;
  };

  const stepDown = async (): Promise<void> => {
    const lastFence = fence;
    fence = undefined;
    leads = false;
    await onLost();
    if (lastFence !== undefined) await leases.release(lastFence);
  };

  /** Runs one election step; returns the delay until the next one. */
  const step = async (): Promise<number> => {
    let pauseMs = ttlMs / 3;
    if (fence === undefined) pauseMs = await elect();
    else if (resigned || !(await renewed(fence))) {
      observer.log?.warn({ token: fence.token }, 'leadership of persistent subscriptions lost');
      await stepDown();
      pauseMs = 0;
    }
    const workers = await leases.announce(key.subscription, owner(), ttlMs * 2);
    const [lease] = await leases.list(key.subscription);
    const holder = lease !== undefined && lease.remainingMs > 0 ? lease.owner : undefined;
    members = workers.flatMap((worker) => {
      const address = addressIn(worker);
      return address === undefined ? [] : [{ address, isLeader: worker === holder }];
    });
    return pauseMs;
  };

  /** A late reply counts as lost, because another server may have the lease by then. */
  const renewed = async (current: Fence): Promise<boolean> => {
    try {
      const renewing = leases.renew(current, ttlMs);
      return await withinTime(renewing, { ms: ttlMs / 3, late: () => false, clock });
    } catch (error) {
      observer.log?.warn(
        { err: error },
        'renewal of the leadership of persistent subscriptions failed',
      );
      return false;
    }
  };

  const run = async (pauseMs: number): Promise<void> => {
    let ms = pauseMs;
    while (!stopping.signal.aborted) {
      await pause(ms);
      if (stopping.signal.aborted) return;
      try {
        ms = await step();
      } catch (error) {
        observer.log?.warn(
          { err: error },
          'election of the leader of persistent subscriptions failed',
        );
        ms = ttlMs / 3;
      }
    }
  };
  const pause = async (ms: number): Promise<void> => {
    wake = new AbortController();
    try {
      if (!resigned || fence === undefined) {
        await clock.sleep(ms, AbortSignal.any([wake.signal, stopping.signal]));
      }
    } catch (error) {
      if (!hasCode(error, 'ABORTED')) throw error;
    }
  };

  return {
    get leads() {
      return leads;
    },
    get members() {
      return members;
    },
    join() {
      first ??= (async () => {
        try {
          const pauseMs = await step();
          if (!stopping.signal.aborted) running = run(pauseMs);
        } catch (error) {
          // The next call tries again.
          first = undefined;
          throw error;
        }
      })();
      return first;
    },
    resign() {
      resigned = true;
      leads = false;
      wake?.abort();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await first?.catch(() => undefined);
      await running;
      try {
        if (fence !== undefined) await stepDown();
        if (first !== undefined) await leases.leave(key.subscription, owner());
      } catch (error) {
        // The lease expires without a release.
        observer.log?.warn(
          { err: error },
          'release of the leadership of persistent subscriptions failed',
        );
      }
    },
  };
}

/** For stores without leases: this server is the only one. */
export function soleLeadership(onElected: () => Promise<void>): Leadership {
  let first: Promise<void> | undefined;
  let leads = false;
  return {
    get leads() {
      return leads;
    },
    members: [],
    join() {
      first ??= (async () => {
        try {
          await onElected();
          leads = true;
        } catch (error) {
          first = undefined;
          throw error;
        }
      })();
      return first;
    },
    resign: () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function addressIn(worker: string): Address | undefined {
  const [, host, port] = worker.split(' ');
  return host === undefined || port === undefined ? undefined : { host, port: Number(port) };
}

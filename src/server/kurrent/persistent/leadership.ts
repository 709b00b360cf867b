// Elects the server that runs the persistent subscriptions of a database, with a lease. Only one server may run them,
// because messages in flight exist only in the memory of one process.

import { slept } from '../../../foundation/async/slept.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { holdLease, type HeldLease } from '../../../loops/hold-lease.ts';
import type { LeaseStore, ShardKey } from '../../../subscriptions/subscription-storage.ts';

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

const key: ShardKey = { subscription: 'kurrent-server:persistent-subscriptions', shard: 0 };

export function createLeadership(options: LeadershipOptions): Leadership {
  const { leases, clock, observer, ttlMs, onElected, onLost } = options;
  const id = createIds().next();
  const stopping = new AbortController();
  let lease: HeldLease<ShardKey> | undefined;
  let leads = false;
  let members: readonly Member[] = [];
  let resigned = false;
  let wake = new AbortController();
  let running: Promise<void> | undefined;
  let first: Promise<void> | undefined;

  /** Identifies this process and its address. */
  const owner = (): string => `${id} ${options.address().host} ${options.address().port}`;

  const resign = (): void => {
    resigned = true;
    leads = false;
    wake.abort();
  };

  const elect = async (): Promise<number> => {
    const acquired = await holdLease(leases, {
      key,
      owner: owner(),
      ttlMs,
      clock,
      observer,
      onLost: resign,
    });
    if (acquired.kind === 'held') return Math.min(acquired.retryInMs + 1, ttlMs / 3);
    lease = acquired;
    resigned = false;
    const { token } = lease.fence;
    observer.log?.info({ token }, 'leadership of persistent subscriptions acquired');
    try {
      await onElected();
      leads = !resigned;
    } catch (error) {
      await stepDown();
      throw error;
    }
    return ttlMs / 3;
  };

  const stepDown = async (): Promise<void> => {
    const last = lease;
    lease = undefined;
    leads = false;
    await onLost();
    await last?.release();
  };

  /** Runs one election step; returns the delay until the next one. */
  const step = async (): Promise<number> => {
    wake = new AbortController();
    let pauseMs = ttlMs / 3;
    if (lease === undefined) pauseMs = await elect();
    else if (resigned) {
      const { token } = lease.fence;
      observer.log?.warn({ token }, 'leadership of persistent subscriptions lost');
      await stepDown();
      pauseMs = 0;
    }
    const workers = await leases.announce(key.subscription, owner(), ttlMs * 2);
    const [current] = await leases.list(key.subscription);
    const holder = (current?.remainingMs ?? 0) > 0 ? current?.owner : undefined;
    members = workers.flatMap((worker) => {
      const address = addressIn(worker);
      return address === undefined ? [] : [{ address, isLeader: worker === holder }];
    });
    return pauseMs;
  };

  const run = async (pauseMs: number): Promise<void> => {
    let ms = pauseMs;
    while (!stopping.signal.aborted) {
      await slept(clock, ms, AbortSignal.any([wake.signal, stopping.signal]));
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

  return {
    get leads() {
      return leads && lease?.isValid === true;
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
    resign,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await first?.catch(() => undefined);
      await running;
      try {
        if (lease !== undefined) await stepDown();
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

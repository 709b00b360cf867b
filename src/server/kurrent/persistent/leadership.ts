// Which of several servers over one database runs the persistent subscriptions: one at a time, by a
// lease. Messages in flight are known to one process only, so that two would both deliver them.

import type { Clock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createIds } from '../../../foundation/ids.ts';
import type { Observer } from '../../../foundation/observer.ts';
import { withinTime } from '../../../foundation/within-time.ts';
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
  /** Takes part from now on; resolves when it is known whether this server leads. */
  join(): Promise<void>;
  readonly leads: boolean;
  /** All servers that take part, as far as this one knows. */
  readonly members: readonly Member[];
  /** Somebody else has written what only the leader writes: stands for election again. */
  resign(): void;
}

export interface LeadershipOptions {
  readonly leases: LeaseStore;
  readonly address: () => Address;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Leads once this has resolved. */
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

  /** Also the name of this process among the others. */
  const owner = (): string => `${id} ${options.address().host} ${options.address().port}`;

  const elect = async (): Promise<number> => {
    const asked = await leases.acquire(key, owner(), ttlMs);
    if (asked.kind === 'held') return Math.min(asked.retryInMs + 1, ttlMs / 3);
    fence = { ...key, token: asked.token };
    resigned = false;
    observer.log?.info({ token: asked.token }, 'leads the persistent subscriptions');
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
    const held = fence;
    fence = undefined;
    leads = false;
    await onLost();
    if (held !== undefined) await leases.release(held);
  };

  /** One step; how long to wait until the next. */
  const step = async (): Promise<number> => {
    let pauseMs = ttlMs / 3;
    if (fence === undefined) pauseMs = await elect();
    else if (resigned || !(await renewed(fence))) {
      observer.log?.warn({ token: fence.token }, 'lost the lead of the persistent subscriptions');
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

  /** An answer that does not come is none: others may have taken over by then. */
  const renewed = async (held: Fence): Promise<boolean> => {
    try {
      const renewing = leases.renew(held, ttlMs);
      return await withinTime(renewing, { ms: ttlMs / 3, late: () => false, clock });
    } catch (error) {
      observer.log?.warn(
        { err: error },
        'could not renew the lead of the persistent subscriptions',
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
        observer.log?.warn({ err: error }, 'the lead of the persistent subscriptions is unsettled');
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
          // The next one who asks tries again.
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
        // The lease ends by itself.
        observer.log?.warn({ err: error }, 'could not give the lead back');
      }
    },
  };
}

/** Where there are no leases, there is one server: the one who asks. */
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

// The shared context of all handlers.

import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { StreamOwner } from '../../store/stream-owners.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';
import type { AcceptEvent } from '../../platform/modules/append-rules.ts';
import type { SecretHider } from '../../platform/modules/hide-secrets.ts';
import type { Access } from './access.ts';
import type { AppendBytes } from './append-bytes.ts';
import type { KurrentIdentity, KurrentLimits, KurrentServerOptions } from './kurrent-server.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import { RpcError, status } from './rpc-error.ts';

export interface KurrentContext {
  readonly store: EventStore;
  /** Elect the server that runs the groups; undefined: no other process can open the database. */
  readonly leases: LeaseStore | undefined;
  readonly protocol: Protocol;
  readonly limits: KurrentLimits;
  readonly access: Access;
  readonly ownerOf: StreamOwner;
  readonly audit: KurrentServerOptions['audit'];
  readonly accept: AcceptEvent | undefined;
  readonly hider: SecretHider | undefined;
  readonly subscriptions: SubscriptionSlots;
  readonly appendBytes: AppendBytes;
  /** The size of the messages that all groups hold. */
  readonly groupBytes: { used: number };
  readonly observer: Observer;
  readonly clock: Clock;
  /** Fires when the server stops. */
  readonly stopping: AbortSignal;
}

/** What this reader must not see; administrators move events between stores. */
export function hidesFrom(
  { hider }: Pick<KurrentContext, 'hider'>,
  { scopes }: KurrentIdentity,
): SecretHider['event'] | undefined {
  return scopes.includes('admin') ? undefined : hider?.event;
}

/** Limits the live subscriptions of all clients. */
export interface SubscriptionSlots {
  readonly used: number;
  /** Acquires a slot and returns its release; throws an RpcError at the maximum. */
  acquire(): () => void;
}

export function createSubscriptionSlots(max: number): SubscriptionSlots {
  let used = 0;
  return {
    get used() {
      return used;
    },
    acquire() {
      if (used >= max) {
        throw new RpcError('the server has reached its maximum of subscriptions', {
          status: status.resourceExhausted,
        });
      }
      used += 1;
      let isAcquired = true;
      return () => {
        if (isAcquired) used -= 1;
        isAcquired = false;
      };
    },
  };
}

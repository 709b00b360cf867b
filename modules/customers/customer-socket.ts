// Follows notifications and broadcasts over the WebSocket of the platform.

import { Type } from 'millrace/contracts';
import { MillraceError, type Observer } from 'millrace/foundation';
import {
  defineSocket,
  type ModuleSocket,
  type SocketClient,
  type SocketSession,
} from 'millrace/platform';
import { authorize } from './customer-access.ts';
import type { Notifier } from './customer-notifier.ts';
import { idSchema } from './customer-schemas.ts';

/**
 * Limits of one connection.
 *
 * @example
 * import { customerSocketLimits } from 'millrace/customers';
 *
 * console.log(customerSocketLimits.followsMax); // 32
 */
export const customerSocketLimits = { followsMax: 32 } as const;

const text = Type.String();
const tenant = Type.Optional(
  Type.String({ maxLength: 60, description: 'Required if the credentials belong to no tenant.' }),
);
const after = Type.Optional(
  Type.String({ maxLength: 40, description: 'A position, or `start`. Default: the current end.' }),
);
const position = Type.String({ description: 'Pass it as `after` to continue.' });

const messages = {
  'notify.follow': Type.Object({ customerId: idSchema, tenant, after }),
  'notify.unfollow': Type.Object({ customerId: idSchema, tenant }),
  'notify.follow-broadcasts': Type.Object({ tenant, after }),
  'notify.unfollow-broadcasts': Type.Object({ tenant }),
  'notify.acknowledge': Type.Object({
    customerId: idSchema,
    notificationId: idSchema,
    tenant,
  }),
} as const;

const requestedTenant = Type.Optional(Type.String({ description: 'As in the request.' }));
const changeFields = {
  customerId: text,
  tenant: requestedTenant,
  notificationId: text,
  position,
  at: text,
};

const sends = {
  'notify.following': Type.Object({ customerId: Type.Optional(text), tenant: requestedTenant }),
  'notify.unfollowed': Type.Object({
    customerId: Type.Optional(text),
    tenant: requestedTenant,
    reason: Type.Optional(text),
  }),
  'notify.notification': Type.Object({
    ...changeFields,
    category: text,
    title: text,
    body: Type.Optional(text),
    count: Type.Integer(),
    digest: Type.Optional(Type.Unknown()),
    reminder: Type.Integer(),
  }),
  'notify.merged': Type.Object({ ...changeFields, count: Type.Integer() }),
  'notify.acknowledged': Type.Object({ ...changeFields, by: text }),
  'notify.broadcast': Type.Object({
    tenant: requestedTenant,
    broadcastId: text,
    category: text,
    title: text,
    body: Type.Optional(text),
    position,
    at: text,
  }),
} as const;

type Session = SocketSession<typeof messages>;

/** Without a customer id: broadcasts. */
interface FollowTarget {
  readonly customerId?: string | undefined;
  readonly tenant?: string | undefined;
}

export function customerSocket(
  notifier: Notifier,
  { observer }: { readonly observer: Observer },
): ModuleSocket {
  return defineSocket({ messages, sends, connect });

  function connect(client: SocketClient): Session {
    const { principal } = client;
    const follows = new Map<string, AbortController>();

    /** A repeated follow of a target restarts it, so a client need not track its followed targets. */
    function follow(
      target: FollowTarget,
      open: (tenant: string, signal: AbortSignal) => AsyncIterable<object>,
    ): void {
      const { name, labels, tenant: authorized } = resolve(target);
      if (!follows.has(name) && follows.size >= customerSocketLimits.followsMax) {
        throw new MillraceError(
          'RATE_LIMITED',
          `this connection already follows ${customerSocketLimits.followsMax} targets`,
          {
            details: { retryAfterSeconds: 1 },
          },
        );
      }
      const ending = new AbortController();
      const updates = open(authorized, AbortSignal.any([ending.signal, client.signal]));
      follows.get(name)?.abort();
      follows.set(name, ending);
      client.send({ type: 'notify.following', ...labels });
      void sendAll(updates, labels, ending.signal).catch((error: unknown) => {
        if (ending.signal.aborted || client.signal.aborted) return;
        if (follows.get(name) === ending) follows.delete(name);
        observer.log?.error({ err: error }, 'following notifications failed');
        client.send({ type: 'notify.unfollowed', ...labels, reason: 'follow it again' });
      });
    }

    /** Waits for the client after each message, so a slow client also slows the reads from the store. */
    async function sendAll(
      updates: AsyncIterable<object>,
      labels: object,
      ended: AbortSignal,
    ): Promise<void> {
      for await (const update of updates) {
        if (ended.aborted || client.signal.aborted) return;
        client.send({ ...labels, ...update });
        await client.whenSent();
      }
    }

    function unfollow(target: FollowTarget): void {
      const { name, labels } = resolve(target);
      const found = follows.get(name);
      if (found === undefined) {
        throw new MillraceError('REQUEST_INVALID', `this connection does not follow '${name}'`, {
          details: { field: 'customerId' },
        });
      }
      found.abort();
      follows.delete(name);
      client.send({ type: 'notify.unfollowed', ...labels });
    }

    /** `labels` go with every message: customers of two tenants may have the same id. */
    function resolve(target: FollowTarget): {
      readonly tenant: string;
      readonly name: string;
      readonly labels: object;
    } {
      const authorized = authorize(principal, { action: 'read', tenant: undefined, ...target });
      const { customerId, tenant: requested } = target;
      const name = `${authorized.tenant} ${customerId ?? ''}`;
      return { tenant: authorized.tenant, name, labels: { customerId, tenant: requested } };
    }

    return {
      on: {
        'notify.follow'({ customerId, tenant: requested, after: start }) {
          follow({ customerId, tenant: requested }, (authorized, signal) =>
            toMessages(notifier.follow({ tenant: authorized, customerId, after: start, signal })),
          );
        },
        'notify.unfollow': unfollow,
        'notify.follow-broadcasts'({ tenant: requested, after: start }) {
          follow({ tenant: requested }, (authorized, signal) =>
            toMessages(notifier.followBroadcasts({ tenant: authorized, after: start, signal })),
          );
        },
        'notify.unfollow-broadcasts': unfollow,
        async 'notify.acknowledge'({ customerId, notificationId, tenant: requested }, { signal }) {
          const action = 'own';
          const { tenant: authorized, name } = authorize(principal, {
            action,
            tenant: requested,
            customerId,
          });
          const address = { tenant: authorized, customerId, user: { id: name }, signal };
          await notifier.acknowledge({ ...address, notificationId, by: name });
        },
      },
      [Symbol.dispose]() {
        for (const each of follows.values()) each.abort();
        follows.clear();
      },
    };
  }
}

async function* toMessages(
  updates: AsyncIterable<{ readonly kind?: string; readonly position: string }>,
): AsyncGenerator<object> {
  for await (const { kind = 'broadcast', ...update } of updates) {
    yield { type: `notify.${kind}`, ...update };
  }
}

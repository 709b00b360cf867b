// Notifications and broadcasts as they happen, over the WebSocket of the platform.

import { Type } from '../contracts/type.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import {
  defineSocket,
  type ModuleSocket,
  type SocketClient,
  type SocketSession,
} from '../platform/modules/module-web.ts';
import { mayNotify } from './customer-access.ts';
import type { Notifier } from './customer-notifier.ts';
import { customerIdSchema, notificationIdSchema } from './customer-schemas.ts';

/**
 * Bounds of one connection.
 *
 * @example
 * import { customerSocketLimits } from 'millrace/customers';
 *
 * console.log(customerSocketLimits.followsMax); // 32
 */
export const customerSocketLimits = { followsMax: 32 } as const;

const text = Type.String();
const tenant = Type.Optional(
  Type.String({ maxLength: 60, description: 'Where the credentials are of no tenant.' }),
);
const after = Type.Optional(
  Type.String({ maxLength: 40, description: 'A position, or `start`. Default: from now on.' }),
);
const position = Type.String({ description: 'For `after`.' });

const messages = {
  'notify.follow': Type.Object({ customerId: customerIdSchema, tenant, after }),
  'notify.unfollow': Type.Object({ customerId: customerIdSchema, tenant }),
  'notify.follow-broadcasts': Type.Object({ tenant, after }),
  'notify.unfollow-broadcasts': Type.Object({ tenant }),
  'notify.acknowledge': Type.Object({
    customerId: customerIdSchema,
    notificationId: notificationIdSchema,
    tenant,
  }),
} as const;

const toldOf = Type.Optional(Type.String({ description: 'As it was asked for.' }));
const about = { customerId: text, tenant: toldOf, notificationId: text, position, at: text };

const sends = {
  'notify.following': Type.Object({ customerId: Type.Optional(text), tenant: toldOf }),
  'notify.unfollowed': Type.Object({
    customerId: Type.Optional(text),
    tenant: toldOf,
    reason: Type.Optional(text),
  }),
  'notify.notification': Type.Object({
    ...about,
    category: text,
    title: text,
    body: Type.Optional(text),
    count: Type.Integer(),
    digest: Type.Optional(Type.Unknown()),
    reminder: Type.Integer(),
  }),
  'notify.merged': Type.Object({ ...about, count: Type.Integer() }),
  'notify.acknowledged': Type.Object({ ...about, by: text }),
  'notify.broadcast': Type.Object({
    tenant: toldOf,
    broadcastId: text,
    category: text,
    title: text,
    body: Type.Optional(text),
    position,
    at: text,
  }),
} as const;

type Session = SocketSession<typeof messages>;

/** Of a customer, or broadcasts. */
interface Asked {
  readonly customerId?: string;
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

    /** A second one of the same begins anew: clients that come again need not know what they had. */
    function follow(
      asked: Asked,
      open: (tenant: string, signal: AbortSignal) => AsyncIterable<object>,
    ): void {
      const { name, whose, tenant: asker } = told(asked);
      if (!follows.has(name) && follows.size >= customerSocketLimits.followsMax) {
        throw new MillraceError('RATE_LIMITED', 'this connection follows too many', {
          details: { retryAfterSeconds: 1 },
        });
      }
      const ending = new AbortController();
      const news = open(asker, AbortSignal.any([ending.signal, client.signal]));
      follows.get(name)?.abort();
      follows.set(name, ending);
      client.send({ type: 'notify.following', ...whose });
      void pass(news, whose, ending.signal).then(
        () => undefined,
        (error: unknown) => {
          if (ending.signal.aborted || client.signal.aborted) return;
          if (follows.get(name) === ending) follows.delete(name);
          observer.log?.error({ err: error }, 'following notifications failed');
          client.send({ type: 'notify.unfollowed', ...whose, reason: 'follow it again' });
        },
      );
    }

    /** At the pace of the client: what it does not read is not fetched. */
    async function pass(
      news: AsyncIterable<object>,
      whose: object,
      ended: AbortSignal,
    ): Promise<void> {
      for await (const each of news) {
        if (ended.aborted || client.signal.aborted) return;
        client.send({ ...whose, ...each });
        await client.whenSent();
      }
    }

    function unfollow(asked: Asked): void {
      const { name, whose } = told(asked);
      const found = follows.get(name);
      if (found === undefined) {
        throw new MillraceError('REQUEST_INVALID', 'this connection does not follow that', {
          details: { field: 'customerId' },
        });
      }
      found.abort();
      follows.delete(name);
      client.send({ type: 'notify.unfollowed', ...whose });
    }

    /** Customers of two tenants may have one name: whoever may ask for both is told which it is. */
    function told({ customerId, tenant: asked }: Asked): {
      readonly tenant: string;
      readonly name: string;
      readonly whose: object;
    } {
      const whose = {
        ...(customerId === undefined ? {} : { customerId }),
        ...(asked === undefined ? {} : { tenant: asked }),
      };
      const who = mayNotify(principal, {
        deed: 'read',
        tenant: asked,
        ...(customerId === undefined ? {} : { customerId }),
      });
      return { tenant: who.tenant, name: `${who.tenant} ${customerId ?? ''}`, whose };
    }

    return {
      on: {
        'notify.follow'({ customerId, tenant: asked, after: behind }) {
          follow({ customerId, tenant: asked }, (of, signal) =>
            socketNews(notifier.follow({ tenant: of, customerId, after: behind, signal })),
          );
        },
        'notify.unfollow': unfollow,
        'notify.follow-broadcasts'({ tenant: asked, after: behind }) {
          follow({ tenant: asked }, (of, signal) =>
            socketBroadcasts(notifier.followBroadcasts({ tenant: of, after: behind, signal })),
          );
        },
        'notify.unfollow-broadcasts': unfollow,
        async 'notify.acknowledge'({ customerId, notificationId, tenant: asked }, { signal }) {
          const deed = 'own';
          const who = mayNotify(principal, { deed, tenant: asked, customerId });
          const address = { tenant: who.tenant, customerId, user: { id: who.name }, signal };
          await notifier.acknowledge({ ...address, notificationId, by: who.name });
        },
      },
      [Symbol.dispose]() {
        for (const each of follows.values()) each.abort();
        follows.clear();
      },
    };
  }
}

async function* socketNews(news: ReturnType<Notifier['follow']>): AsyncGenerator<object> {
  for await (const { kind, ...each } of news) yield { type: `notify.${kind}`, ...each };
}

async function* socketBroadcasts(
  news: ReturnType<Notifier['followBroadcasts']>,
): AsyncGenerator<object> {
  for await (const each of news) yield { type: 'notify.broadcast', ...each };
}

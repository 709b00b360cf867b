// Customers and broadcasts as programs use them: tell, follow, list, acknowledge; what the routes and the
// WebSocket do, too.

import type { NewEvent } from '../contracts/envelope.ts';
import { buildStreamName } from '../contracts/stream-name.ts';
import { createIds } from '../foundation/ids.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { Flow } from '../platform/modules/flow-of.ts';
import type { WebContext } from '../platform/modules/module-web.ts';
import type { DocumentQueries, Page } from '../projections/documents.ts';
import { parsePosition, type Position } from '../store/position.ts';
import {
  publishBroadcast,
  broadcastPublished,
  type BroadcastCategory,
} from './broadcast-events.ts';
import { broadcastProjection, type BroadcastDocument } from './broadcast-projection.ts';
import { customerContact, type CustomerContact } from './customer-contact.ts';
import {
  acknowledgeNotification,
  changeContact,
  configureCustomer,
  notifyCustomer,
} from './customer-events.ts';
import { customerInbox } from './customer-inbox.ts';
import { newsOf, type CustomerNews } from './customer-news.ts';
import {
  notificationDocumentId,
  notificationProjection,
  type NotificationDocument,
} from './customer-notifications.ts';
import type { CustomerMessage, Preferences } from './customer-schemas.ts';

export interface CustomerAddress extends Flow {
  readonly tenant: string;
  readonly customerId: string;
  readonly signal?: AbortSignal;
  readonly user?: { readonly id: string };
}

export interface NotifyRequest extends CustomerAddress {
  readonly message: Omit<CustomerMessage, 'category' | 'notificationId' | 'origin'> & {
    readonly category: 'alert' | 'info';
    /** The same one again is not told again. Default: a new one. */
    readonly notificationId?: string;
  };
  /** As of commands: a repeat gets the first answer, however long ago that was. */
  readonly idempotencyKey?: string;
}

/** What became of it: told, waiting, one of several, in a digest, not wanted, or there already. */
export type NotifyOutcome = 'delivered' | 'held' | 'merged' | 'digested' | 'suppressed' | 'known';

export interface Notified {
  readonly notificationId: string;
  readonly outcome: NotifyOutcome;
  /** The notification that it was merged into, or the digest that it is in. */
  readonly partOf?: string;
  readonly position: Position | undefined;
}

export interface BroadcastRequest extends Omit<CustomerAddress, 'customerId'> {
  readonly broadcastId?: string;
  readonly category: BroadcastCategory;
  readonly title: string;
  readonly body?: string;
  readonly idempotencyKey?: string;
}

export interface BroadcastNews {
  /** To go on behind it. */
  readonly position: string;
  readonly broadcastId: string;
  readonly category: BroadcastCategory;
  readonly title: string;
  readonly body?: string;
  readonly at: string;
}

export interface ListRequest {
  readonly tenant: string;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface Notifier {
  notify(request: NotifyRequest): Promise<Notified>;
  acknowledge(
    request: CustomerAddress & { readonly notificationId: string; readonly by: string },
  ): Promise<{ readonly position: Position | undefined }>;
  configure(request: CustomerAddress & { readonly preferences: Preferences }): Promise<void>;
  preferences(address: CustomerAddress): Promise<Preferences>;
  changeContact(request: CustomerAddress & { readonly contact: CustomerContact }): Promise<void>;
  contact(address: CustomerAddress): Promise<CustomerContact>;
  /** Newest first. `open`: those that wait for somebody to acknowledge them. */
  list(
    request: ListRequest & { readonly customerId: string; readonly open?: boolean },
  ): Promise<Page<NotificationDocument>>;
  broadcast(
    request: BroadcastRequest,
  ): Promise<{ readonly broadcastId: string; readonly position: Position | undefined }>;
  broadcasts(request: ListRequest): Promise<Page<BroadcastDocument>>;
  /**
   * What the customer is told from now on, or behind a position (`start`: from the first one), for as long
   * as the signal lets it; from the store, so that nothing is missed and nothing comes twice.
   */
  follow(
    request: CustomerAddress & {
      readonly after?: string | undefined;
      readonly signal: AbortSignal;
    },
  ): AsyncIterable<CustomerNews>;
  followBroadcasts(request: {
    readonly tenant: string;
    readonly after?: string | undefined;
    readonly signal: AbortSignal;
  }): AsyncIterable<BroadcastNews>;
}

type NotifierPlatform = Pick<WebContext, 'documents' | 'handle' | 'load' | 'store' | 'tenants'>;

const outcomes: Readonly<Record<string, NotifyOutcome>> = {
  'customer-inbox.delivered.v1': 'delivered',
  'customer-inbox.held.v1': 'held',
  'customer-inbox.merged.v1': 'merged',
  'customer-inbox.digest-added.v1': 'digested',
  'customer-inbox.suppressed.v1': 'suppressed',
};

const ids = createIds();

/**
 * The API of a platform that runs `notifications()`.
 *
 * @example
 * import { createNotifier, notifications } from 'millrace/customers';
 * import { createPlatform } from 'millrace/platform';
 *
 * await using platform = await createPlatform({ modules: [notifications()] });
 * await platform.start();
 * const notifier = createNotifier({
 *   handle: (request) => platform.handle(request),
 *   documents: (family) => platform.documents(family),
 *   load: platform.load,
 *   store: platform.engines.store,
 *   tenants: platform.tokens.tenants,
 * });
 * const message = { category: 'alert', title: 'The disk is full', key: 'disk' } as const;
 * console.log((await notifier.notify({ tenant: 'core', customerId: 'cust_1', message })).outcome);
 */
export function createNotifier(platform: NotifierPlatform): Notifier {
  const { handle, load, store, tenants } = platform;

  function documentsOf<Document>(projection: {
    readonly readModel: { readonly bc: string; readonly aggregate: string };
  }): DocumentQueries<Document> {
    const { bc, aggregate } = projection.readModel;
    return platform.documents({ bc, aggregate }) as DocumentQueries<Document>;
  }

  return {
    async notify({ customerId, message, ...request }) {
      const notificationId = message.notificationId ?? ids.next();
      const command = notifyCustomer({ ...message, notificationId });
      const { events, position } = await handle({ ...request, id: customerId, command });
      // What was due comes first; the message's own is the last that is one of these.
      const own = events.findLast(({ type, payload }) => {
        const { notice, mergedId, notificationId: id } = payload as Record<string, unknown>;
        const about = (notice as { readonly notificationId?: string } | undefined)?.notificationId;
        return outcomes[type] !== undefined && [about, mergedId, id].includes(notificationId);
      });
      const outcome = outcomes[own?.type ?? ''] ?? 'known';
      return { notificationId, outcome, ...partOf(own), position };
    },
    async acknowledge({ customerId, notificationId, by, ...request }) {
      const acknowledge = async (listed?: Listed): Promise<{ position: Position | undefined }> => {
        const vouched = listed === undefined ? {} : { listed };
        const command = acknowledgeNotification({ notificationId, by, ...vouched });
        const { position } = await handle({ ...request, id: customerId, command });
        return { position };
      };
      try {
        return await acknowledge();
      } catch (error) {
        if (!isUnknown(error)) throw error;
        // Older than what the inbox remembers: what stands in the list can be acknowledged nevertheless.
        const id = notificationDocumentId(customerId, notificationId);
        const queries = documentsOf<NotificationDocument>(notificationProjection);
        const found = await queries.get(request.tenant, id);
        if (found === undefined || found.document.status === 'collecting') throw error;
        return acknowledge(counterpartsOf(found.document));
      }
    },
    async configure({ customerId, preferences, ...request }) {
      await handle({ ...request, id: customerId, command: configureCustomer({ preferences }) });
    },
    async preferences({ tenant, customerId, signal }) {
      const { state } = await load(customerInbox, { tenant, id: customerId, ...signalOf(signal) });
      return state.preferences;
    },
    async changeContact({ customerId, contact, ...request }) {
      await handle({ ...request, id: customerId, command: changeContact(contact) });
    },
    async contact({ tenant, customerId, signal }) {
      const address = { tenant, id: customerId, ...signalOf(signal) };
      return (await load(customerContact, address)).state;
    },
    list: ({ tenant, customerId, open = false, limit, cursor }) =>
      documentsOf<NotificationDocument>(notificationProjection).byRange(
        tenant,
        open ? 'open' : 'customer',
        { group: customerId, direction: 'descending', ...pageOf(limit, cursor) },
      ),
    async broadcast({ broadcastId = ids.next(), category, title, body, ...request }) {
      const command = publishBroadcast({
        category,
        title,
        ...(body === undefined ? {} : { body }),
      });
      const { position } = await handle({ ...request, id: broadcastId, command });
      return { broadcastId, position };
    },
    broadcasts: ({ tenant, limit, cursor }) =>
      documentsOf<BroadcastDocument>(broadcastProjection).byRange(tenant, 'at', {
        direction: 'descending',
        ...pageOf(limit, cursor),
      }),
    follow({ tenant, customerId, after, signal }) {
      const stream = buildStreamName('notify', 'customer-inbox', 1, tenant, customerId, tenants);
      const behind =
        after === 'start'
          ? {}
          : ({ after: after === undefined ? 'end' : revisionOf(after) } as const);
      return newsIn(store.subscribeToStream(stream, { signal, ...behind }));
    },
    followBroadcasts({ tenant, after, signal }) {
      const behind =
        after === 'start'
          ? {}
          : ({ after: after === undefined ? 'end' : parsePosition(after) } as const);
      const filter = { types: [broadcastPublished.type], tenant };
      return broadcastsIn(store.subscribe({ filter, signal, ...behind }));
    },
  };
}

type Listed = NonNullable<Parameters<typeof acknowledgeNotification>[0]['listed']>;

function isUnknown(error: unknown): boolean {
  return hasCode(error, 'COMMAND_REFUSED') && error.details?.['reason'] === 'notification-unknown';
}

function counterpartsOf({ origin, copy }: NotificationDocument): Listed {
  return { ...(origin === null ? {} : { origin }), ...(copy === null ? {} : { copy }) };
}

function partOf(own: NewEvent | undefined): { readonly partOf?: string } {
  const { digestId, mergedId, notificationId } = (own?.payload ?? {}) as Readonly<
    Record<string, string | undefined>
  >;
  const whole = digestId ?? (mergedId === undefined ? undefined : notificationId);
  return whole === undefined ? {} : { partOf: whole };
}

async function* newsIn(
  items: ReturnType<WebContext['store']['subscribeToStream']>,
): AsyncGenerator<CustomerNews> {
  for await (const item of items) {
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      const news = newsOf(event);
      if (news !== undefined) yield news;
    }
  }
}

async function* broadcastsIn(
  items: ReturnType<WebContext['store']['subscribe']>,
): AsyncGenerator<BroadcastNews> {
  for await (const item of items) {
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      if (!broadcastPublished.is(event)) continue;
      yield { position: event.position, broadcastId: event.aggregate.id, ...event.payload };
    }
  }
}

function revisionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new MillraceError('REQUEST_INVALID', `'${text.slice(0, 40)}' is no position`, {
    details: { field: 'after' },
  });
}

function signalOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function pageOf(
  limit: number | undefined,
  cursor: string | undefined,
): { readonly limit?: number; readonly cursor?: string } {
  return {
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

// The API for programs: notify, follow, list and acknowledge. The routes and the WebSocket use it as well.

import { buildStreamName, type NewEvent } from 'millrace/contracts';
import { createIds, hasCode, MillraceError } from 'millrace/foundation';
import type { Flow, WebContext } from 'millrace/platform';
import type { DocumentQueries, Page, Projection } from 'millrace/projections';
import { parsePosition, type Position, type RecordedEvent } from 'millrace/store';
import {
  broadcastProjection,
  broadcastPublished,
  publishBroadcast,
  type BroadcastCategory,
  type BroadcastDocument,
} from './broadcast.ts';
import { deliveryOf } from './customer-bus.ts';
import { customerContact, type CustomerContact } from './customer-contact.ts';
import {
  acknowledgeNotification,
  changeContact,
  configureCustomer,
  inboxAcknowledged,
  inboxMerged,
  notifyCustomer,
} from './customer-events.ts';
import { customerInbox } from './customer-inbox.ts';
import {
  notificationDocumentId,
  notificationProjection,
  type NotificationDocument,
} from './customer-projections.ts';
import {
  present,
  type Category,
  type CustomerMessage,
  type Notice,
  type Preferences,
} from './customer-schemas.ts';

export interface CustomerAddress extends Flow {
  readonly tenant: string;
  readonly customerId: string;
  readonly signal?: AbortSignal | undefined;
  readonly user?: { readonly id: string } | undefined;
}

export interface NotifyRequest extends CustomerAddress {
  readonly message: Omit<CustomerMessage, 'category' | 'notificationId' | 'origin'> & {
    readonly category: 'alert' | 'info';
    /** A second notification with the same id has no effect. Default: a new id. */
    readonly notificationId?: string | undefined;
  };
  /** A repeated request with the same key gets the first response. */
  readonly idempotencyKey?: string | undefined;
}

/** `held`: until the end of the quiet hours. `suppressed`: the category is off. `known`: a duplicate. */
export type NotifyOutcome = 'delivered' | 'held' | 'merged' | 'digested' | 'suppressed' | 'known';

export interface Notified {
  readonly notificationId: string;
  readonly outcome: NotifyOutcome;
  /** The notification it was merged into, or the digest that contains it. */
  readonly partOf?: string | undefined;
  readonly position: Position | undefined;
}

export interface BroadcastRequest extends Omit<CustomerAddress, 'customerId'> {
  readonly broadcastId?: string | undefined;
  readonly category: BroadcastCategory;
  readonly title: string;
  readonly body?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

export interface BroadcastNews {
  /** Pass it as `after` to continue after this broadcast. */
  readonly position: string;
  readonly broadcastId: string;
  readonly category: BroadcastCategory;
  readonly title: string;
  readonly body?: string;
  readonly at: string;
}

/** A change in an inbox: a notification or reminder, a merge into an earlier notification, or an acknowledgement. */
export type CustomerNews =
  | {
      readonly kind: 'notification';
      /** Pass it as `after` to continue after this change. */
      readonly position: string;
      readonly notificationId: string;
      readonly category: Category;
      readonly title: string;
      readonly body?: string;
      readonly count: number;
      readonly digest?: NonNullable<Notice['digest']>;
      /** 0 for the first delivery, then the number of the reminder. */
      readonly reminder: number;
      readonly at: string;
    }
  | {
      readonly kind: 'merged';
      readonly position: string;
      readonly notificationId: string;
      readonly count: number;
      readonly at: string;
    }
  | {
      readonly kind: 'acknowledged';
      readonly position: string;
      readonly notificationId: string;
      readonly by: string;
      readonly at: string;
    };

export interface ListRequest {
  readonly tenant: string;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
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
  /** Newest first. `open`: only those without an acknowledgement. */
  list(
    request: ListRequest & { readonly customerId: string; readonly open?: boolean | undefined },
  ): Promise<Page<NotificationDocument>>;
  broadcast(
    request: BroadcastRequest,
  ): Promise<{ readonly broadcastId: string; readonly position: Position | undefined }>;
  broadcasts(request: ListRequest): Promise<Page<BroadcastDocument>>;
  /**
   * The changes of the inbox from now on, or after a position (`start`: from the first one), until the signal
   * fires. Messages come from the store, so none is missed and none comes twice.
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

  function documentsOf<Document extends object>({
    readModel,
  }: Projection<Document>): DocumentQueries<Document> {
    return platform.documents(readModel) as DocumentQueries<Document>;
  }

  return {
    async notify({ customerId, message, ...request }) {
      const notificationId = message.notificationId ?? ids.next();
      const command = notifyCustomer({ ...message, notificationId });
      const { events, position } = await handle({ ...request, id: customerId, command });
      // Events of work that was due come first, so the last match belongs to this message.
      const own = events.findLast(({ type, payload }) => {
        const { notice, mergedId, notificationId: id } = payload as Record<string, unknown>;
        const noticeId = (notice as Partial<Notice> | undefined)?.notificationId;
        return outcomes[type] !== undefined && [noticeId, mergedId, id].includes(notificationId);
      });
      const outcome = outcomes[own?.type ?? ''] ?? 'known';
      return { notificationId, outcome, partOf: partOf(own), position };
    },
    async acknowledge({ customerId, notificationId, by, ...request }) {
      const acknowledge = async (listed?: Listed): Promise<{ position: Position | undefined }> => {
        const command = acknowledgeNotification(present({ notificationId, by, listed }));
        const { position } = await handle({ ...request, id: customerId, command });
        return { position };
      };
      try {
        return await acknowledge();
      } catch (error) {
        if (!isUnknown(error)) throw error;
        // The inbox remembers recent notifications only; the read model lists the older ones.
        const id = notificationDocumentId(customerId, notificationId);
        const found = await documentsOf(notificationProjection).get(request.tenant, id);
        if (found === undefined || found.document.status === 'collecting') throw error;
        return acknowledge(counterpartsOf(found.document));
      }
    },
    async configure({ customerId, preferences, ...request }) {
      await handle({ ...request, id: customerId, command: configureCustomer({ preferences }) });
    },
    async preferences({ tenant, customerId, signal }) {
      return (await load(customerInbox, { tenant, id: customerId, signal })).state.preferences;
    },
    async changeContact({ customerId, contact, ...request }) {
      await handle({ ...request, id: customerId, command: changeContact(contact) });
    },
    async contact({ tenant, customerId, signal }) {
      return (await load(customerContact, { tenant, id: customerId, signal })).state;
    },
    list: ({ tenant, customerId, open = false, limit, cursor }) =>
      documentsOf(notificationProjection).byRange(tenant, open ? 'open' : 'customer', {
        group: customerId,
        direction: 'descending',
        limit,
        cursor,
      }),
    async broadcast({ broadcastId = ids.next(), category, title, body, ...request }) {
      const command = publishBroadcast(present({ category, title, body }));
      const { position } = await handle({ ...request, id: broadcastId, command });
      return { broadcastId, position };
    },
    broadcasts: ({ tenant, limit, cursor }) =>
      documentsOf(broadcastProjection).byRange(tenant, 'at', {
        direction: 'descending',
        limit,
        cursor,
      }),
    follow({ tenant, customerId, after, signal }) {
      const stream = buildStreamName('notify', 'customer-inbox', 1, tenant, customerId, tenants);
      const start = startOf(after, revisionOf);
      return changesIn(store.subscribeToStream(stream, { signal, after: start }), newsOf);
    },
    followBroadcasts({ tenant, after, signal }) {
      const filter = { types: [broadcastPublished.type], category: 'notify.broadcast.v1', tenant };
      const start = startOf(after, parsePosition);
      return changesIn(store.subscribe({ filter, signal, after: start }), broadcastNewsOf);
    },
  };
}

type Listed = NonNullable<Parameters<typeof acknowledgeNotification>[0]['listed']>;

function isUnknown(error: unknown): boolean {
  return hasCode(error, 'COMMAND_REJECTED') && error.details?.['reason'] === 'notification-unknown';
}

function counterpartsOf({ origin, copy }: NotificationDocument): Listed {
  return present({ origin: origin ?? undefined, copy: copy ?? undefined });
}

function partOf(own: NewEvent | undefined): string | undefined {
  const { digestId, mergedId, notificationId } = (own?.payload ?? {}) as Readonly<
    Record<string, string | undefined>
  >;
  return digestId ?? (mergedId === undefined ? undefined : notificationId);
}

async function* changesIn<Change>(
  items: ReturnType<WebContext['store']['subscribe']>,
  toChange: (event: RecordedEvent) => Change | undefined,
): AsyncGenerator<Change> {
  for await (const item of items) {
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      const change = toChange(event);
      if (change !== undefined) yield change;
    }
  }
}

function broadcastNewsOf(event: RecordedEvent): BroadcastNews | undefined {
  if (!broadcastPublished.is(event)) return undefined;
  return { position: event.position, broadcastId: event.aggregate.id, ...event.payload };
}

export function newsOf(event: RecordedEvent): CustomerNews | undefined {
  const position = String(event.revision);
  const delivery = deliveryOf(event);
  if (delivery !== undefined) {
    if (!delivery.channels.includes('socket')) return undefined;
    const { notificationId, category, title, body, count, digest } = delivery.notice;
    return present({
      kind: 'notification' as const,
      position,
      notificationId,
      category,
      title,
      body,
      count,
      digest,
      reminder: delivery.step,
      at: event.occurredAt,
    });
  }
  if (inboxMerged.is(event)) {
    const { notificationId, count, at } = event.payload;
    return { kind: 'merged', position, notificationId, count, at };
  }
  if (inboxAcknowledged.is(event)) {
    const { notificationId, by, at } = event.payload;
    return { kind: 'acknowledged', position, notificationId, by, at };
  }
  return undefined;
}

/** Undefined: the store starts before the first event. */
function startOf<Start>(
  after: string | undefined,
  parse: (text: string) => Start,
): Start | 'end' | undefined {
  if (after === 'start') return undefined;
  return after === undefined ? 'end' : parse(after);
}

function revisionOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new MillraceError('REQUEST_INVALID', `'${text.slice(0, 40)}' is not a position`, {
    details: { field: 'after' },
  });
}

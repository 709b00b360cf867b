// The read models: the customers of a tenant, and their notifications.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type {
  digestAdded,
  digestOpened,
  inboxAcknowledged,
  inboxConfigured,
  inboxDelivered,
  inboxEscalated,
  inboxHeld,
  inboxMerged,
  inboxOpened,
  inboxReminded,
  inboxSuppressed,
} from './customer-events.ts';
import type { Category, Notice, Preferences } from './customer-schemas.ts';
import { initialInbox, type Counterpart } from './customer-state.ts';

type Projected<Definition extends { parse(payload: unknown): unknown }> = ProjectedEvent<
  ReturnType<Definition['parse']>
>;

export interface CustomerDocument {
  readonly customerId: string;
  readonly since: string;
  readonly preferences: Preferences;
}

/**
 * The read model of the customers of a tenant: `app:{core}:notify:customer-inbox:v1:<customer>`.
 *
 * @example
 * import { customerProjection } from 'millrace/customers';
 *
 * console.log(customerProjection.readModel.name); // notify.customer-inbox.v1
 */
export const customerProjection = projection({
  name: 'sub:notify:customer-projection:v1',
  readModel: readModel<CustomerDocument>({ bc: 'notify', aggregate: 'customer-inbox', version: 1 }),
  on: {
    'customer-inbox.opened.v1': (
      before,
      { payload: { at }, aggregate }: Projected<typeof inboxOpened>,
    ) => before ?? { customerId: aggregate.id, since: at, preferences: initialInbox.preferences },
    'customer-inbox.configured.v1': (
      before,
      { payload, aggregate }: Projected<typeof inboxConfigured>,
    ) => ({
      customerId: aggregate.id,
      since: before?.since ?? payload.at,
      preferences: payload.preferences,
    }),
  },
});

/** `collecting`: a digest whose window is open. `suppressed`: the customer has turned the category off. */
export type NotificationStatus =
  | 'collecting'
  | 'held'
  | 'delivered'
  | 'acknowledged'
  | 'suppressed';

export interface NotificationDocument {
  readonly notificationId: string;
  readonly customerId: string;
  readonly category: Category;
  readonly title: string;
  readonly body: string | null;
  readonly key: string | null;
  readonly count: number;
  readonly status: NotificationStatus;
  /** When the inbox accepted it. */
  readonly at: string;
  /** Set while the notification is held. */
  readonly heldUntil: string | null;
  readonly deliveredAt: string | null;
  readonly reminders: number;
  readonly acknowledgedAt: string | null;
  readonly acknowledgedBy: string | null;
  readonly digest: NonNullable<Notice['digest']> | null;
  /** The notification that this one was escalated from. */
  readonly origin: Counterpart | null;
  /** The notification that this one was escalated to. */
  readonly copy: Counterpart | null;
}

interface Identified {
  readonly digestId?: string | undefined;
  readonly notice?: Notice | undefined;
  readonly notificationId?: string | undefined;
}

/** Notification ids are unique per customer only. */
export function notificationDocumentId(customerId: string, notificationId: string): string {
  return `${customerId}.${notificationId}`;
}

/**
 * The read model of notifications: `app:{core}:notify:notification:v1:<customer>.<id>`. The group `customer` lists
 * all notifications of a customer, the group `open` those without an acknowledgement.
 *
 * @example
 * import { notificationProjection } from 'millrace/customers';
 *
 * console.log([...notificationProjection.readModel.groups]); // ['customer', 'open']
 */
export const notificationProjection = projection({
  name: 'sub:notify:notification-projection:v1',
  readModel: readModel<NotificationDocument>({
    bc: 'notify',
    aggregate: 'notification',
    version: 1,
    groups: {
      customer: ({ customerId, at }) => ({ [customerId]: Date.parse(at) }),
      open: ({ customerId, status, at }) =>
        status === 'delivered' || status === 'held' ? { [customerId]: Date.parse(at) } : {},
    },
  }),
  id({ aggregate, payload }) {
    const { digestId, notice, notificationId = '' } = payload as Identified;
    return notificationDocumentId(
      aggregate.id,
      digestId ?? notice?.notificationId ?? notificationId,
    );
  },
  on: {
    'customer-inbox.suppressed.v1': (before, event: Projected<typeof inboxSuppressed>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'suppressed' as const,
      heldUntil: null,
    }),
    'customer-inbox.held.v1': (before, event: Projected<typeof inboxHeld>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'held' as const,
      heldUntil: event.payload.until,
    }),
    'customer-inbox.delivered.v1': (before, event: Projected<typeof inboxDelivered>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'delivered' as const,
      heldUntil: null,
      deliveredAt: event.payload.at,
    }),
    'customer-inbox.merged.v1': (before, { payload }: Projected<typeof inboxMerged>) =>
      before === null ? null : { ...before, count: payload.count },
    'customer-inbox.digest-opened.v1': (before, event: Projected<typeof digestOpened>) => {
      const { digestId, key, from, to } = event.payload;
      const digest = { key, from, to, items: [] };
      const notice = { notificationId: digestId, category: 'digest' as const, title: key, digest };
      return {
        ...documentOf(before, event, { ...notice, count: 1 }),
        count: 0,
        status: 'collecting' as const,
      };
    },
    'customer-inbox.digest-added.v1': (before, _event: Projected<typeof digestAdded>) =>
      before === null ? null : { ...before, count: before.count + 1 },
    'customer-inbox.reminded.v1': (before, { payload }: Projected<typeof inboxReminded>) =>
      before === null ? null : { ...before, reminders: payload.step },
    'customer-inbox.escalated.v1': (before, { payload }: Projected<typeof inboxEscalated>) => {
      const { to: customerId, copyId: notificationId } = payload;
      if (before === null || customerId === undefined || notificationId === undefined) {
        return before;
      }
      return { ...before, copy: { customerId, notificationId } };
    },
    'customer-inbox.acknowledged.v1': (before, event: Projected<typeof inboxAcknowledged>) => {
      const { at: acknowledgedAt, by: acknowledgedBy } = event.payload;
      const status = 'acknowledged' as const;
      return before === null
        ? null
        : { ...before, status, heldUntil: null, acknowledgedAt, acknowledgedBy };
    },
  },
});

function documentOf(
  before: NotificationDocument | null,
  { aggregate, payload: { at } }: ProjectedEvent<{ readonly at: string }>,
  notice: Notice,
): NotificationDocument {
  const { notificationId, category, title, body, key, count, digest, origin } = notice;
  return {
    notificationId,
    customerId: aggregate.id,
    category,
    title,
    body: body ?? null,
    key: key ?? null,
    count,
    status: 'held',
    at: before?.at ?? at,
    heldUntil: null,
    deliveredAt: before?.deliveredAt ?? null,
    reminders: before?.reminders ?? 0,
    acknowledgedAt: null,
    acknowledgedBy: null,
    digest: digest ?? null,
    origin: origin ?? null,
    copy: before?.copy ?? null,
  };
}

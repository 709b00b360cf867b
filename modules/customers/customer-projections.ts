// The read models: the customers of a tenant, and their notifications.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { isForgotten } from 'millrace/store';
import { notificationIdOf, type InboxPayloads } from './customer-events.ts';
import type { Category, Notice, Preferences } from './customer-schemas.ts';
import { initialInbox, type Counterpart } from './customer-state.ts';

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
export const customerProjection = projection<
  CustomerDocument,
  Pick<InboxPayloads, 'customer-inbox.opened.v1' | 'customer-inbox.configured.v1'>
>({
  name: 'sub:notify:customer-projection:v1',
  readModel: readModel({ bc: 'notify', aggregate: 'customer-inbox', version: 1 }),
  on: {
    'customer-inbox.opened.v1': (before, { payload: { at }, aggregate }) =>
      before ?? { customerId: aggregate.id, since: at, preferences: initialInbox.preferences },
    'customer-inbox.configured.v1': (before, { payload, aggregate }) => ({
      customerId: aggregate.id,
      since: before?.since ?? payload.at,
      preferences: payload.preferences,
    }),
  },
  onForgotten: () => null,
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
export const notificationProjection = projection<
  NotificationDocument,
  Omit<
    InboxPayloads,
    | 'customer-inbox.opened.v1'
    | 'customer-inbox.configured.v1'
    | 'customer-inbox.digest-closed.v1'
    | 'customer-inbox.wake-set.v1'
  >
>({
  name: 'sub:notify:notification-projection:v1',
  readModel: readModel({
    bc: 'notify',
    aggregate: 'notification',
    version: 1,
    groups: {
      customer: ({ customerId, at }) => ({ [customerId]: Date.parse(at) }),
      open: ({ customerId, status, at }) =>
        status === 'delivered' || status === 'held' ? { [customerId]: Date.parse(at) } : {},
    },
  }),
  filter: { category: 'notify.customerInbox.v1' },
  id({ aggregate, payload, headers }) {
    const id = isForgotten(payload)
      ? headers?.['notificationId']
      : notificationIdOf(payload as object);
    return notificationDocumentId(aggregate.id, String(id));
  },
  on: {
    'customer-inbox.suppressed.v1': (before, event) =>
      documentOf(before, event, { notice: event.payload.notice, status: 'suppressed' }),
    'customer-inbox.held.v1': (before, event) => {
      const { notice, until: heldUntil } = event.payload;
      return { ...documentOf(before, event, { notice, status: 'held' }), heldUntil };
    },
    'customer-inbox.delivered.v1': (before, event) => {
      const { notice, at: deliveredAt } = event.payload;
      return { ...documentOf(before, event, { notice, status: 'delivered' }), deliveredAt };
    },
    'customer-inbox.merged.v1': (before, { payload }) =>
      before === null ? null : { ...before, count: payload.count },
    'customer-inbox.digest-opened.v1': (before, event) => {
      const { digestId: notificationId, key, from, to } = event.payload;
      const digest = { key, from, to, items: [] };
      const notice: Notice = { notificationId, category: 'digest', title: key, digest, count: 0 };
      return documentOf(before, event, { notice, status: 'collecting' });
    },
    'customer-inbox.digest-added.v1': (before) =>
      before === null ? null : { ...before, count: before.count + 1 },
    'customer-inbox.reminded.v1': (before, { payload }) =>
      before === null ? null : { ...before, reminders: payload.step },
    'customer-inbox.escalated.v1': (before, { payload: { to, copyId } }) =>
      before === null || to === undefined || copyId === undefined
        ? before
        : { ...before, copy: { customerId: to, notificationId: copyId } },
    'customer-inbox.acknowledged.v1': (before, { payload: { at, by } }) =>
      before === null
        ? null
        : {
            ...before,
            status: 'acknowledged',
            heldUntil: null,
            acknowledgedAt: at,
            acknowledgedBy: by,
          },
  },
  onForgotten: () => null,
});

function documentOf(
  before: NotificationDocument | null,
  { aggregate, payload: { at } }: ProjectedEvent<{ readonly at: string }>,
  { notice, status }: { readonly notice: Notice; readonly status: NotificationStatus },
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
    status,
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

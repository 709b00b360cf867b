// `app:{core}:notify:notification:v1:<customer>.<id>`: what a customer was told, or will be, and what became of it.

import { projection, type ProjectedEvent } from '../projections/projection.ts';
import { readModel } from '../projections/read-model.ts';
import type {
  digestAdded,
  digestOpened,
  inboxAcknowledged,
  inboxDelivered,
  inboxEscalated,
  inboxHeld,
  inboxMerged,
  inboxReminded,
  inboxSuppressed,
} from './customer-events.ts';
import type { Category, Notice } from './customer-schemas.ts';
import type { Counterpart } from './customer-state.ts';

/** `collecting`: a digest whose window is open. `suppressed`: the customer does not want it. */
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
  /** When it came. */
  readonly at: string;
  /** Of one that is held. */
  readonly heldUntil: string | null;
  readonly deliveredAt: string | null;
  readonly reminders: number;
  readonly acknowledgedAt: string | null;
  readonly acknowledgedBy: string | null;
  readonly digest: NonNullable<Notice['digest']> | null;
  /** Escalated from there, and to there. */
  readonly origin: Counterpart | null;
  readonly copy: Counterpart | null;
}

type PayloadOf<Definition extends { parse(payload: unknown): unknown }> = ProjectedEvent<
  ReturnType<Definition['parse']>
>;

interface Identified {
  readonly digestId?: string;
  readonly notice?: Notice;
  readonly notificationId?: string;
}

/** A customer's ids are its own: two customers may have the same. */
export function notificationDocumentId(customerId: string, notificationId: string): string {
  return `${customerId}.${notificationId}`;
}

/**
 * What customers were told, as documents: the newest first by the group `customer`, and what is not
 * acknowledged by the group `open`.
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
    'customer-inbox.suppressed.v1': (before, event: PayloadOf<typeof inboxSuppressed>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'suppressed' as const,
      heldUntil: null,
    }),
    'customer-inbox.held.v1': (before, event: PayloadOf<typeof inboxHeld>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'held' as const,
      heldUntil: event.payload.until,
    }),
    'customer-inbox.delivered.v1': (before, event: PayloadOf<typeof inboxDelivered>) => ({
      ...documentOf(before, event, event.payload.notice),
      status: 'delivered' as const,
      heldUntil: null,
      deliveredAt: event.payload.at,
    }),
    'customer-inbox.merged.v1': (before, { payload }: PayloadOf<typeof inboxMerged>) =>
      before === null ? null : { ...before, count: payload.count },
    'customer-inbox.digest-opened.v1': (before, event: PayloadOf<typeof digestOpened>) => {
      const { digestId, key, from, to } = event.payload;
      const digest = { key, from, to, items: [] };
      const notice = { notificationId: digestId, category: 'digest' as const, title: key, digest };
      return {
        ...documentOf(before, event, { ...notice, count: 1 }),
        count: 0,
        status: 'collecting' as const,
      };
    },
    'customer-inbox.digest-added.v1': (before, _event: PayloadOf<typeof digestAdded>) =>
      before === null ? null : { ...before, count: before.count + 1 },
    'customer-inbox.reminded.v1': (before, { payload }: PayloadOf<typeof inboxReminded>) =>
      before === null ? null : { ...before, reminders: payload.step },
    'customer-inbox.escalated.v1': (before, { payload }: PayloadOf<typeof inboxEscalated>) => {
      const { to: customerId, copyId: notificationId } = payload;
      if (before === null || customerId === undefined || notificationId === undefined) {
        return before;
      }
      return { ...before, copy: { customerId, notificationId } };
    },
    'customer-inbox.acknowledged.v1': (before, event: PayloadOf<typeof inboxAcknowledged>) => {
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

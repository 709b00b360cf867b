// A notification: the aggregate, its read model and the query over it.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { projection, readModel, type DocumentQueries, type Page } from 'millrace/projections';
import type { NotificationDocument } from '../documents.ts';
import { pageLimits, type PageRequest } from '../pages.ts';
import { withoutText, writtenBy } from '../personal-text.ts';
import { update, type Projected } from '../projected.ts';
import {
  createNotification,
  deleteNotification,
  notificationCreated,
  notificationDeleted,
  notificationRead,
  readNotification,
} from './notification-events.ts';

export interface NotificationState {
  readonly status: 'none' | 'unread' | 'read' | 'deleted';
  readonly userId: string;
}

const none: NotificationState = { status: 'none', userId: '' };

export const notification = defineAggregate({
  bc: 'collab',
  name: 'notification',
  version: 1,
  events: [notificationCreated, notificationRead, notificationDeleted],
  commands: [createNotification, readNotification, deleteNotification],
  initial: none,
  evolve: {
    'notification.created.v1': (_state, { userId }): NotificationState => ({
      status: 'unread',
      userId,
    }),
    'notification.read.v1': (state): NotificationState => ({ ...state, status: 'read' }),
    'notification.deleted.v1': (state): NotificationState => ({ ...state, status: 'deleted' }),
  },
  forgotten(state, event): NotificationState {
    const { userId } = (withoutText(event) ?? state) as NotificationState;
    return { status: 'unread', userId };
  },
  decide: {
    // The id is derived from event and recipient, so an existing notification is a duplicate.
    'notification.create': ({ by, ...notice }, { status }, { tenant, nowMs }) => {
      if (status !== 'none') return [];
      const created = notificationCreated({ ...notice, createdAt: new Date(nowMs).toISOString() });
      if (by === undefined) return created;
      return writtenBy({ tenant, userId: by }, created, { message: notice.title });
    },
    'notification.read': ({ by }, state, { id, nowMs }) => {
      assertOwn(state, by, id);
      if (state.status === 'read') return [];
      return notificationRead({ userId: by, readAt: new Date(nowMs).toISOString() });
    },
    'notification.delete': ({ by }, state, { id }) => {
      if (state.status === 'deleted' && state.userId === by) return [];
      assertOwn(state, by, id);
      return notificationDeleted({ userId: by });
    },
  },
});

/** A notification of another user gets the same error as an unknown one. */
function assertOwn({ status, userId }: NotificationState, by: string, id: string): void {
  if ((status === 'unread' || status === 'read') && userId === by) return;
  throw new CommandRejected('notification-unknown', `Unknown notification '${id}'.`);
}

export const notificationProjection = projection({
  name: 'sub:collab:notification-projection:v1',
  readModel: readModel<NotificationDocument>({
    bc: 'collab',
    aggregate: 'notification',
    version: 1,
    groups: {
      user: ({ userId, createdAt }) => ({ [userId]: Date.parse(createdAt) }),
      unread: ({ userId, createdAt, readAt }) =>
        readAt === null ? { [userId]: Date.parse(createdAt) } : {},
    },
  }),
  on: {
    'notification.created.v1': (_before, event: Projected<typeof notificationCreated>) =>
      unread(event),
    'notification.read.v1': update<NotificationDocument, Projected<typeof notificationRead>>(
      (document, { payload: { readAt } }) => ({ ...document, readAt }),
    ),
    'notification.deleted.v1': (_before, _event: Projected<typeof notificationDeleted>) => null,
  },
  onForgotten(_before, event) {
    const payload = withoutText(event) as Projected<typeof notificationCreated>['payload'];
    return unread({ ...event, payload });
  },
});

function unread({
  payload,
  aggregate,
}: Projected<typeof notificationCreated>): NotificationDocument {
  const { email: _mailed, ...notice } = payload;
  return { ...notice, notificationId: aggregate.id, readAt: null };
}

/** Notifications of a user, newest first, with the number of unread ones. */
export async function notificationsOf(
  notifications: DocumentQueries<NotificationDocument>,
  request: PageRequest & { readonly userId: string; readonly unreadOnly?: boolean | undefined },
): Promise<Page<NotificationDocument> & { readonly unreadCount: number }> {
  const { tenant, userId, unreadOnly = false, limit = pageLimits.default, cursor } = request;
  const [page, unreadCount] = await Promise.all([
    notifications.byRange(tenant, unreadOnly ? 'unread' : 'user', {
      group: userId,
      direction: 'descending',
      limit,
      cursor,
    }),
    notifications.count(tenant, 'unread', { group: userId }),
  ]);
  return { ...page, unreadCount };
}

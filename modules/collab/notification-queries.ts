// What a user was told, and how much of it is unread.

import type { DocumentQueries, Page } from 'millrace/projections';
import type { PageRequest } from './chat-queries.ts';
import type { NotificationDocument } from './notification-projection.ts';

const pageSize = 50;

/** The newest first. */
export async function notificationsOf(
  notifications: DocumentQueries<NotificationDocument>,
  asked: PageRequest & { readonly userId: string; readonly unreadOnly?: boolean },
): Promise<Page<NotificationDocument> & { readonly unreadCount: number }> {
  const { tenant, userId, unreadOnly = false, limit = pageSize, cursor } = asked;
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

// `app:{core}:collab:notification:v1:<id>`: what a user was told, newest first, and what of it is unread.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type {
  NotificationType,
  notificationCreated,
  notificationDeleted,
  notificationRead,
} from './notification-events.ts';

export interface NotificationDocument {
  readonly notificationId: string;
  readonly userId: string;
  readonly type: NotificationType;
  readonly title: string;
  readonly message: string;
  readonly resourceId: string;
  readonly workspaceId: string;
  readonly chatId: string;
  readonly createdAt: string;
  /** Null: not yet. */
  readonly readAt: string | null;
}

type Created = ProjectedEvent<ReturnType<typeof notificationCreated.parse>>;
type Read = ProjectedEvent<ReturnType<typeof notificationRead.parse>>;
type Deleted = ProjectedEvent<ReturnType<typeof notificationDeleted.parse>>;

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
    'notification.created.v1': (_before, { payload, aggregate }: Created) => {
      const { email: _mailed, ...notice } = payload;
      return { ...notice, notificationId: aggregate.id, readAt: null };
    },
    'notification.read.v1': (before, { payload: { readAt } }: Read) =>
      before === null ? null : { ...before, readAt },
    'notification.deleted.v1': (_before, _event: Deleted) => null,
  },
});

// A notification: made once, read by its recipient, deleted by its recipient.

import { defineAggregate, Refused } from 'millrace/aggregates';
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
  decide: {
    // The id says for which event and whom: what is there already is this one.
    'notification.create': (notice, { status }, { nowMs }) =>
      status === 'none'
        ? notificationCreated({ ...notice, createdAt: new Date(nowMs).toISOString() })
        : [],
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

/** Of others' notifications nobody learns that they are there. */
function assertOwn({ status, userId }: NotificationState, by: string, id: string): void {
  if ((status === 'unread' || status === 'read') && userId === by) return;
  throw new Refused('notification-unknown', `there is no notification ${id}`);
}

import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  createNotification,
  deleteNotification,
  notificationCreated,
  notificationDeleted,
  notificationRead,
  readNotification,
} from './notification-events.ts';
import { notification } from './notification.ts';

const notice = {
  userId: 'bob',
  type: 'task.status_changed',
  title: 'Task status changed',
  message: 'Task status changed to Done',
  resourceId: 't-1',
  workspaceId: 'w-1',
  chatId: 't-1',
  email: false,
} as const;
const at = '2025-09-30T10:00:00.000Z';
const created = [notificationCreated({ ...notice, createdAt: at })];
const read = [...created, notificationRead({ userId: 'bob', readAt: at })];
const deleted = [...read, notificationDeleted({ userId: 'bob' })];

test('a notification is created once, read once and deleted once', () => {
  given(notification, []).when(createNotification(notice)).then(created);
  given(notification, created).when(createNotification(notice)).then([]);
  given(notification, created)
    .when(readNotification({ by: 'bob' }))
    .then(read.slice(1));
  given(notification, read)
    .when(readNotification({ by: 'bob' }))
    .then([]);
  given(notification, created)
    .when(deleteNotification({ by: 'bob' }))
    .then([notificationDeleted({ userId: 'bob' })]);
  given(notification, read)
    .when(deleteNotification({ by: 'bob' }))
    .then(deleted.slice(2));
  given(notification, deleted)
    .when(deleteNotification({ by: 'bob' }))
    .then([]);
  given(notification, deleted).when(createNotification(notice)).then([]);
});

test('a notification is unknown to other users', () => {
  for (const history of [created, read, deleted]) {
    given(notification, history)
      .when(readNotification({ by: 'eve' }))
      .thenRejected('notification-unknown');
    given(notification, history)
      .when(deleteNotification({ by: 'eve' }))
      .thenRejected('notification-unknown');
  }
  given(notification, [])
    .when(readNotification({ by: 'bob' }))
    .thenRejected('notification-unknown');
  given(notification, [])
    .when(deleteNotification({ by: 'bob' }))
    .thenRejected('notification-unknown');
  given(notification, deleted)
    .when(readNotification({ by: 'bob' }))
    .thenRejected('notification-unknown');
});

// Events and commands of a notification; each event of a task causes one per recipient.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { streamId, timestamp, value } from '../fields.ts';

const notificationTypes = [
  'task.status_changed',
  'task.assigned',
  'task.assignee_changed',
  'task.priority_changed',
  'task.due_changed',
  'task.title_changed',
  'task.severity_changed',
  'task.type_changed',
] as const;

const notice = z.object({
  userId: streamId,
  type: z.enum(notificationTypes),
  title: value,
  message: value,
  resourceId: streamId,
  workspaceId: streamId,
  chatId: streamId,
  /** Also send it by e-mail; the address is looked up when it is sent. */
  email: z.boolean(),
});
export type NotificationType = (typeof notificationTypes)[number];

export const notificationCreated = defineEvent(
  'notification.created.v1',
  notice.extend({ createdAt: timestamp }),
);
export const notificationRead = defineEvent(
  'notification.read.v1',
  z.object({ userId: streamId, readAt: timestamp }),
);
export const notificationDeleted = defineEvent(
  'notification.deleted.v1',
  z.object({ userId: streamId }),
);
export const createNotification = defineCommand(
  'notification.create',
  // The author of a text in the message.
  notice.extend({ by: streamId.optional() }),
);
export const readNotification = defineCommand('notification.read', z.object({ by: streamId }));
export const deleteNotification = defineCommand('notification.delete', z.object({ by: streamId }));

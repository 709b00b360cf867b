export { broadcast, type BroadcastState } from './broadcast.ts';
export { broadcastEvents, publishBroadcast, type BroadcastCategory } from './broadcast-events.ts';
export { broadcastProjection, type BroadcastDocument } from './broadcast-projection.ts';
export { customerContact, customerSubject, type CustomerContact } from './customer-contact.ts';
export { customerCommands, customerEvents } from './customer-events.ts';
export { customerInbox } from './customer-inbox.ts';
export { customerLimits } from './customer-limits.ts';
export { notifications, type NotificationsOptions } from './customer-module.ts';
export type { CustomerNews } from './customer-news.ts';
export {
  notificationProjection,
  type NotificationDocument,
  type NotificationStatus,
} from './customer-notifications.ts';
export {
  createNotifier,
  type BroadcastNews,
  type BroadcastRequest,
  type CustomerAddress,
  type ListRequest,
  type Notified,
  type Notifier,
  type NotifyOutcome,
  type NotifyRequest,
} from './customer-notifier.ts';
export { composeNotificationMail } from './customer-outbox.ts';
export { customerProjection, type CustomerDocument } from './customer-projection.ts';
export type {
  Category,
  CategoryPreference,
  Channel,
  CustomerMessage,
  Notice,
  Preferences,
} from './customer-schemas.ts';
export { customerSocketLimits } from './customer-socket.ts';
export type { InboxEvent, InboxState } from './customer-state.ts';
export { digestWindowAt, type DigestAddress, type DigestWindow } from './digest-window.ts';
export { quietUntil, type QuietHours, type QuietWindow, type Weekday } from './quiet-hours.ts';

export {
  broadcast,
  broadcastEvents,
  broadcastProjection,
  publishBroadcast,
  type BroadcastCategory,
  type BroadcastDocument,
  type BroadcastState,
} from './broadcast.ts';
export { customerContact, customerSubject, type CustomerContact } from './customer-contact.ts';
export { customerCommands, customerEvents, type InboxEvent } from './customer-events.ts';
export { customerInbox } from './customer-inbox.ts';
export { customerLimits } from './customer-limits.ts';
export { notifications, type NotificationsOptions } from './customer-module.ts';
export {
  createNotifier,
  type BroadcastNews,
  type BroadcastRequest,
  type CustomerAddress,
  type CustomerNews,
  type ListRequest,
  type Notified,
  type Notifier,
  type NotifyOutcome,
  type NotifyRequest,
} from './customer-notifier.ts';
export { composeNotificationMail } from './customer-outbox.ts';
export {
  customerProjection,
  notificationProjection,
  type CustomerDocument,
  type NotificationDocument,
  type NotificationStatus,
} from './customer-projections.ts';
export type {
  Category,
  CategoryPreference,
  Channel,
  CustomerMessage,
  Notice,
  Preferences,
} from './customer-schemas.ts';
export { customerSocketLimits } from './customer-socket.ts';
export type { InboxState } from './customer-state.ts';
export { digestWindowAt, type DigestAddress, type DigestWindow } from './digest-window.ts';
export { quietUntil, type QuietHours, type QuietWindow, type Weekday } from './quiet-hours.ts';

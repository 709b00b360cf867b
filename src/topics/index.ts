export type { AccessRule, NotifyUser, TopicPermission } from './users/access-rules.ts';
export {
  fileAttachments,
  type AttachmentFacts,
  type AttachmentStore,
  type StoredAttachment,
} from './file-attachments.ts';
export { hashNotifyPassword } from './users/notify-password.ts';
export type { NotifyTokenSettings, NotifyUserSettings } from './users/notify-users.ts';
export { openUserDirectory, type UserDirectoryOptions } from './users/open-user-directory.ts';
export type { PublishParams, PublishRules } from './publish-params.ts';
export type { PeekedBody } from './publish-body.ts';
export type { MessageFilter, Since } from './read-params.ts';
export type { NamedTemplate } from './templates/named-templates.ts';
export type { TopicBus, TopicBusDelivery, TopicBusMessage } from './topic-bus.ts';
export type { TopicBatch, TopicReader } from './topic-hub.ts';
export type { PositionedMessage } from './topic-log.ts';
export type { TopicAction, TopicAttachment, TopicEvent, TopicMessage } from './topic-message.ts';
export {
  openTopics,
  type NotifyEmail,
  type PublishRequest,
  type ReadRequest,
  type TopicBody,
  type Topics,
  type TopicsOptions,
} from './topics.ts';
export type { DirectoryUser, UserBook, UserChange, UserDirectory } from './users/user-directory.ts';
export { notifyLimits, type NotifyLimits, type VisitorBook } from './visitor-limits.ts';

export { collab, type CollabOptions } from './collab.ts';
export { botId, collabLimits, type ChatType, type Role, type TaskType } from './fields.ts';
export type { TagCommand } from './tag-commands.ts';
export {
  changePreferences,
  changeProfile,
  claimUsername,
  registerUser,
  usernameClaimed,
  userPreferencesChanged,
  userProfileChanged,
  userRegistered,
  type EmailPreference,
} from './user-events.ts';
export { user, usernames, type UsernameState, type UserState } from './user.ts';
export { userProjection, type UserDocument } from './user-projection.ts';
export {
  addMember,
  changeMemberRole,
  createInvite,
  createWorkspace,
  inviteCreated,
  inviteRevoked,
  inviteUsed,
  memberAdded,
  memberRemoved,
  memberRoleChanged,
  removeMember,
  revokeInvite,
  useInvite,
  workspaceCreated,
} from './workspace-events.ts';
export { workspace, type Invite, type Member, type WorkspaceState } from './workspace.ts';
export {
  workspaceProjection,
  type InviteDocument,
  type MemberDocument,
  type WorkspaceDocument,
} from './workspace-projection.ts';
export {
  changeChatTitle,
  changeChatType,
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  createChat,
  deleteMessage,
  editMessage,
  includeInChat,
  joinChat,
  leaveChat,
  messageDeleted,
  messageEdited,
  messagePosted,
  participantJoined,
  participantLeft,
  postAnswer,
  postMessage,
  recordTags,
  tagsParsed,
} from './chat-events.ts';
export { chat, type ChatState, type Participant } from './chat.ts';
export {
  chatProjection,
  inWorkspace,
  type ChatDocument,
  type ParticipantDocument,
} from './chat-projection.ts';
export { messageProjection, type MessageDocument } from './message-projection.ts';
export {
  applyTags,
  assigneeChanged,
  createTask,
  dueChanged,
  priorities,
  priorityChanged,
  severities,
  severityChanged,
  statusChanged,
  tagsAnswered,
  taskCreated,
  taskStatuses,
  titleChanged,
  typeChanged,
  unwatchTask,
  watcherAdded,
  watcherRemoved,
  watchTask,
  type Priority,
  type Severity,
  type TaskStatus,
} from './task-events.ts';
export { task } from './task.ts';
export type { TaskState } from './judge-tags.ts';
export { columnOf, taskProjection, type TaskDocument } from './task-projection.ts';
export {
  createNotification,
  deleteNotification,
  notificationCreated,
  notificationDeleted,
  notificationRead,
  readNotification,
  type NotificationType,
} from './notification-events.ts';
export { notification, type NotificationState } from './notification.ts';
export { notificationProjection, type NotificationDocument } from './notification-projection.ts';
export { messagesOf, searchMessages, visibleChats, type PageRequest } from './chat-queries.ts';
export {
  findTasks,
  taskBoard,
  type BoardColumn,
  type TaskFilters,
  type TasksAsked,
  type TaskSort,
  type TaskSource,
} from './task-queries.ts';
export { notificationsOf } from './notification-queries.ts';
export { composeMail } from './notification-mail.ts';
export { ensureUser, userIdOf, userSubject, type SignedIn } from './ensure-user.ts';
export { newInviteToken, parseInviteToken, type InviteToken } from './invite-token.ts';
export { parseTags, tagParserVersion, type ParsedTags } from './tag-parser.ts';
export { accessRules, type Action } from './web/access-rules.ts';
export { socketLimits } from './web/collab-socket.ts';
export { aliases, endpoints, type Endpoint } from './web/endpoints.ts';
export { messageLimits } from './web/message-limiter.ts';

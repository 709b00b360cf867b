export { collab, type CollabOptions } from './collab.ts';
export {
  botId,
  collabLimits,
  type ChatType,
  type Role,
  type TaskType,
  type TagCommand,
} from './fields.ts';
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
export {
  user,
  usernames,
  type UsernameState,
  type UserState,
  userProjection,
  type UserDocument,
  ensureUser,
  userIdOf,
  userSubject,
  type SignedIn,
} from './user.ts';
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
export {
  workspace,
  type Invite,
  type Member,
  type WorkspaceState,
  workspaceProjection,
  type InviteDocument,
  type MemberDocument,
  type WorkspaceDocument,
  newInviteToken,
  parseInviteToken,
  type InviteToken,
} from './workspace.ts';
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
  messageProjection,
  type MessageDocument,
  messagesOf,
  searchMessages,
  visibleChats,
  type PageRequest,
} from './chat-read-models.ts';
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
} from './tasks/task-events.ts';
export { task } from './tasks/task.ts';
export type { TaskState } from './tasks/judge-tags.ts';
export {
  columnOf,
  taskProjection,
  type TaskDocument,
  findTasks,
  taskBoard,
  type BoardColumn,
  type TaskFilters,
  type TasksAsked,
  type TaskSort,
  type TaskSource,
} from './tasks/task-read-models.ts';
export {
  createNotification,
  deleteNotification,
  notificationCreated,
  notificationDeleted,
  notificationRead,
  readNotification,
  type NotificationType,
} from './notifications/notification-events.ts';
export {
  notification,
  type NotificationState,
  notificationProjection,
  type NotificationDocument,
  notificationsOf,
} from './notifications/notification.ts';
export { composeMail } from './notifications/notifier.ts';
export { parseTags, tagParserVersion, type ParsedTags } from './tasks/tag-parser.ts';
export { accessRules, type Action } from './web/access.ts';
export { socketLimits } from './web/collab-socket.ts';
export { aliases, endpoints, type Endpoint } from './web/endpoints.ts';
export { messageLimits } from './web/message-limiter.ts';

// The documents of the read models and the other responses of the HTTP API, as schemas.

import { Type } from 'millrace/contracts';
import type { Static, TSchema } from 'typebox';
import { chatType, role, taskType } from './fields.ts';
import { priorities, severities, taskStatuses } from './tasks/task-events.ts';

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const time = Type.String({ description: 'ISO 8601.' });

export const roleSchema = Type.Enum(role.options);
export const chatTypeSchema = Type.Enum(chatType.options);
export const taskTypeSchema = Type.Enum(taskType.options);
export const statusSchema = Type.Enum([...new Set(Object.values(taskStatuses).flat())]);
export const prioritySchema = Type.Enum([...priorities]);

export const memberSchema = Type.Object(
  { userId: text, username: text, role: roleSchema, joinedAt: time },
  { title: 'Member' },
);
export type MemberDocument = Readonly<Static<typeof memberSchema>>;

export const workspaceSchema = Type.Object(
  {
    workspaceId: text,
    name: text,
    createdBy: text,
    createdAt: time,
    role: Type.Enum(role.options, { description: "The caller's role." }),
    memberCount: Type.Integer(),
  },
  { title: 'Workspace' },
);

const inviteFields = {
  inviteId: text,
  role: roleSchema,
  expiresAt: time,
  maxUses: Type.Integer(),
};
export const inviteSchema = Type.Object(
  { ...inviteFields, uses: Type.Integer(), isRevoked: Type.Boolean(), createdBy: text },
  { title: 'Invite' },
);
export type InviteDocument = Readonly<Static<typeof inviteSchema>>;
export const newInviteSchema = Type.Object(
  { ...inviteFields, token: Type.String({ description: 'Returned only once.' }) },
  { title: 'NewInvite' },
);

export const participantSchema = Type.Object(
  { userId: text, role: roleSchema, joinedAt: time },
  { title: 'Participant' },
);

export const chatSchema = Type.Object(
  {
    chatId: text,
    workspaceId: text,
    type: chatTypeSchema,
    title: text,
    isPublic: Type.Boolean(),
    createdBy: text,
    createdAt: time,
    participants: Type.Array(participantSchema),
  },
  { title: 'Chat' },
);
/** A chat without its messages. */
export type ChatDocument = Readonly<Static<typeof chatSchema>>;

export const messageSchema = Type.Object(
  {
    messageId: text,
    chatId: text,
    authorId: Type.String({ description: '`bot` for replies of the bot.' }),
    content: text,
    timestamp: time,
    inReplyTo: Type.Optional(text),
    editedAt: Type.Optional(time),
  },
  { title: 'Message' },
);

export const taskSchema = Type.Object(
  {
    taskId: text,
    chatId: text,
    workspaceId: text,
    type: taskTypeSchema,
    title: text,
    status: statusSchema,
    /** Copied from the chat; a private task is visible to the participants of its chat. */
    isPublic: Type.Boolean(),
    assignee: nullable(text),
    priority: nullable(prioritySchema),
    /** A date or a date-time, as the user wrote it. */
    due: nullable(text),
    severity: nullable(Type.Enum([...severities])),
    watchers: Type.Array(text),
    createdBy: text,
    createdAt: time,
    updatedAt: time,
  },
  { title: 'Task' },
);
export type TaskDocument = Readonly<Static<typeof taskSchema>>;

export const boardSchema = Type.Object(
  {
    columns: Type.Array(
      Type.Object({
        status: statusSchema,
        count: Type.Integer(),
        tasks: Type.Array(taskSchema, { description: 'Last changed first.' }),
      }),
    ),
  },
  { title: 'Board' },
);

export const notificationSchema = Type.Object(
  {
    notificationId: text,
    userId: text,
    type: text,
    title: text,
    message: text,
    resourceId: text,
    workspaceId: text,
    chatId: text,
    createdAt: time,
    /** Null if the notification is unread. */
    readAt: nullable(time),
  },
  { title: 'Notification' },
);
export type NotificationDocument = Readonly<Static<typeof notificationSchema>>;

export const meSchema = Type.Object(
  {
    userId: text,
    username: text,
    displayName: nullable(text),
    email: nullable(text),
    preferences: Type.Object({ email: Type.Enum(['all', 'mentions', 'none']) }),
  },
  { title: 'Me' },
);

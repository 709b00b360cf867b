// Schemas of the answers, and pages of lists: `{ items, cursor }`.

import { Type } from 'millrace/contracts';
import type { JsonAnswer } from 'millrace/platform';
import type { Page } from 'millrace/projections';
import type { TObject, TSchema } from 'typebox';
import { chatType, taskType } from '../fields.ts';
import { priorities, severities, taskStatuses } from '../tasks/task-events.ts';
import { invalid } from './collab-errors.ts';

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const time = Type.String({ description: 'ISO 8601.' });

export const roleSchema = Type.Enum(['admin', 'member']);
export const chatTypeSchema = Type.Enum(chatType.options);
export const taskTypeSchema = Type.Enum(taskType.options);
export const statusSchema = Type.Enum([...new Set(Object.values(taskStatuses).flat())]);
export const prioritySchema = Type.Enum([...priorities]);

export const memberSchema = Type.Object(
  { userId: text, username: text, role: roleSchema, joinedAt: time },
  { title: 'Member' },
);

export const workspaceSchema = Type.Object(
  {
    workspaceId: text,
    name: text,
    createdBy: text,
    createdAt: time,
    role: Type.Enum(['admin', 'member'], { description: "The caller's role." }),
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

export const messageSchema = Type.Object(
  {
    messageId: text,
    chatId: text,
    authorId: Type.String({ description: '`bot` for answers of the bot.' }),
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
    isPublic: Type.Boolean(),
    assignee: nullable(text),
    priority: nullable(prioritySchema),
    due: nullable(text),
    severity: nullable(Type.Enum([...severities])),
    watchers: Type.Array(text),
    createdBy: text,
    createdAt: time,
    updatedAt: time,
  },
  { title: 'Task' },
);

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
    readAt: nullable(time),
  },
  { title: 'Notification' },
);

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

export const pageLimits = { default: 50, max: 200 } as const;

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: pageLimits.max,
      description: `Default: ${pageLimits.default}.`,
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 1_000, description: '`cursor` of the previous page.' }),
  ),
};

export function pageSchema(item: TSchema): TObject {
  return Type.Object({
    items: Type.Array(item),
    cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
  });
}

export function pageAnswer<Document>(
  { items, cursor }: Page<Document>,
  toItem: (document: Document) => unknown = (document) => document,
): JsonAnswer & { readonly body: object } {
  return { body: { items: items.map(({ document }) => toItem(document)), cursor } };
}

/** A page of a list that one document holds; its cursor is the id of the last item. */
export function pageOfList<Item>(
  list: readonly Item[],
  { limit = pageLimits.default, cursor }: { readonly limit?: number; readonly cursor?: string },
  idOf: (item: Item) => string,
): JsonAnswer {
  const index = cursor === undefined ? -1 : list.findIndex((item) => idOf(item) === cursor);
  if (cursor !== undefined && index === -1) {
    throw invalid('cursor', `Invalid cursor "${cursor.slice(0, 60)}".`);
  }
  const items = list.slice(index + 1, index + 1 + limit);
  const last = items.at(-1);
  const hasMore = index + 1 + limit < list.length && last !== undefined;
  return { body: { items, cursor: hasMore ? idOf(last) : undefined } };
}

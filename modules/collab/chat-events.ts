// Events and commands of a chat.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import {
  answer,
  chatType,
  message,
  role,
  streamId,
  tagCommand,
  timestamp,
  title,
  value,
} from './fields.ts';

const messageIds = z.object({ messageId: streamId, chatId: streamId });
const participant = z.object({ userId: streamId, role });
const parsed = z.object({
  /** Version of the tag grammar: a message is never parsed again by a later version. */
  parserVersion: z.int().min(1),
  commands: z.array(tagCommand).min(1),
  /** The message without its tags. */
  text: value,
  /** Number of tags beyond the limit, which were ignored. */
  leftOut: z.int().min(0),
});
const subject = z.object({ type: chatType, title });

export const chatCreated = defineEvent(
  'chat.created.v1',
  subject.extend({ workspaceId: streamId, isPublic: z.boolean(), createdBy: streamId, timestamp }),
);
export const participantJoined = defineEvent('chat.participant-joined.v1', participant);
export const participantLeft = defineEvent('chat.participant-left.v1', participant);
export const messagePosted = defineEvent(
  'chat.message-posted.v1',
  messageIds.extend({
    authorId: streamId,
    content: answer,
    timestamp,
    /** In a reply of the bot: the message with the tags. */
    inReplyTo: streamId.optional(),
  }),
);
export const tagsParsed = defineEvent(
  'chat.tags-parsed.v1',
  messageIds.extend(parsed.shape).extend({ authorId: streamId, timestamp }),
);
export const messageEdited = defineEvent(
  'chat.message-edited.v1',
  messageIds.extend({ content: message, editedBy: streamId, timestamp }),
);
export const messageDeleted = defineEvent(
  'chat.message-deleted.v1',
  messageIds.extend({ deletedBy: streamId, timestamp }),
);
export const chatTypeChanged = defineEvent('chat.type-changed.v1', subject);
export const chatTitleChanged = defineEvent('chat.title-changed.v1', z.object({ title }));

export const createChat = defineCommand(
  'chat.create',
  subject.extend({
    workspaceId: streamId,
    isPublic: z.boolean(),
    createdBy: streamId,
    /** Initial participants in addition to the creator. */
    participants: z.array(streamId).max(1_000).default([]),
  }),
);
/** Users join public chats themselves; an admin of the chat may add anyone. */
export const joinChat = defineCommand('chat.join', participant.extend({ by: streamId }));
/** Adds the assignee of the chat's task. */
export const includeInChat = defineCommand('chat.include', z.object({ userId: streamId }));
export const leaveChat = defineCommand('chat.leave', z.object({ userId: streamId, by: streamId }));
export const postMessage = defineCommand(
  'chat.post-message',
  z.object({ messageId: streamId, authorId: streamId, content: message }),
);
export const recordTags = defineCommand(
  'chat.record-tags',
  parsed.extend({ messageId: streamId, authorId: streamId }),
);
/** Posts a reply of the bot. */
export const postAnswer = defineCommand(
  'chat.post-answer',
  z.object({
    inReplyTo: streamId,
    content: answer,
    /** The author of the message: the reply may repeat its text. */
    authorId: streamId.optional(),
  }),
);
export const editMessage = defineCommand(
  'chat.edit-message',
  z.object({
    messageId: streamId,
    by: streamId,
    content: message,
    /** For messages that are not recent. */
    authorId: streamId.optional(),
  }),
);
export const deleteMessage = defineCommand(
  'chat.delete-message',
  z.object({ messageId: streamId, by: streamId }),
);
/** The author of a title that comes from a tag. */
const by = streamId.optional();
/** Copies type and title of the chat's task. */
export const changeChatType = defineCommand('chat.change-type', subject.extend({ by }));
export const changeChatTitle = defineCommand('chat.change-title', z.object({ title, by }));

// What can be wanted of a chat, and what can happen to it.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import {
  answer,
  chatType,
  message,
  role,
  streamId,
  timestamp,
  title,
  value,
  tagCommand,
} from './fields.ts';

const place = z.object({ messageId: streamId, chatId: streamId });
const participant = z.object({ userId: streamId, role });
const parsed = z.object({
  /** Of the grammar: what was read once is never read again. */
  parserVersion: z.int().min(1),
  commands: z.array(tagCommand).min(1),
  /** Of the message, what is not in its tags. */
  text: value,
  /** How many tags were left out because there were too many. */
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
  place.extend({
    authorId: streamId,
    content: answer,
    timestamp,
    /** Of the bot's lines: the message that they answer. */
    inReplyTo: streamId.optional(),
  }),
);
export const tagsParsed = defineEvent(
  'chat.tags-parsed.v1',
  place.extend(parsed.shape).extend({ authorId: streamId, timestamp }),
);
export const messageEdited = defineEvent(
  'chat.message-edited.v1',
  place.extend({ content: message, editedBy: streamId, timestamp }),
);
export const messageDeleted = defineEvent(
  'chat.message-deleted.v1',
  place.extend({ deletedBy: streamId, timestamp }),
);
export const chatTypeChanged = defineEvent('chat.type-changed.v1', subject);
export const chatTitleChanged = defineEvent('chat.title-changed.v1', z.object({ title }));

export const createChat = defineCommand(
  'chat.create',
  subject.extend({
    workspaceId: streamId,
    isPublic: z.boolean(),
    createdBy: streamId,
    /** Others who take part from the beginning. */
    participants: z.array(streamId).max(1_000).default([]),
  }),
);
/** By oneself into a public chat, or by an admin of the chat. */
export const joinChat = defineCommand('chat.join', participant.extend({ by: streamId }));
/** Whoever its task was given to. */
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
/** What the bot says. */
export const postAnswer = defineCommand(
  'chat.post-answer',
  z.object({ inReplyTo: streamId, content: answer }),
);
export const editMessage = defineCommand(
  'chat.edit-message',
  z.object({ messageId: streamId, by: streamId, content: message }),
);
export const deleteMessage = defineCommand(
  'chat.delete-message',
  z.object({ messageId: streamId, by: streamId }),
);
/** What the chat's task has become. */
export const changeChatType = defineCommand('chat.change-type', subject);
export const changeChatTitle = defineCommand('chat.change-title', z.object({ title }));

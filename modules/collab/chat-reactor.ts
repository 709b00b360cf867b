// What a chat learns of its task: that it has one, and of which type; what came of its tags, as the bot's
// lines; and that whoever it was given to takes part.

import { reactor } from 'millrace/reactors';
import { changeChatTitle, changeChatType, includeInChat, postAnswer } from './chat-events.ts';
import { botId } from './fields.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import {
  assigneeChanged,
  tagsAnswered,
  taskCreated,
  titleChanged,
  typeChanged,
} from './task-events.ts';

export const botReactor = reactor({
  name: 'sub:collab:bot:v1',
  from: 'start',
  events: [tagsAnswered],
  onRefused: 'dead-letter',
  on: {
    'task.tags-answered.v1': ({ payload: { chatId, messageId, lines } }) => ({
      id: chatId,
      command: postAnswer({ inReplyTo: messageId, content: lines.join('\n') }),
      user: { id: botId },
    }),
  },
});

export const conversionReactor = reactor({
  name: 'sub:collab:conversion:v1',
  from: 'start',
  events: [taskCreated, typeChanged, titleChanged, assigneeChanged],
  onRefused: 'dead-letter',
  // The type and the title that came last are those that stay.
  onDeadLetter: 'park',
  on: {
    'task.created.v1': ({ payload: { chatId: id, type, title }, user }) => ({
      id,
      command: changeChatType({ type, title }),
      ...onBehalfOf(user),
    }),
    'task.type-changed.v1': ({ payload: { chatId: id, newType: type, title }, user }) => ({
      id,
      command: changeChatType({ type, title }),
      ...onBehalfOf(user),
    }),
    'task.title-changed.v1': ({ payload: { chatId: id, newTitle: title }, user }) => ({
      id,
      command: changeChatTitle({ title }),
      ...onBehalfOf(user),
    }),
    'task.assignee-changed.v1': ({ payload: { chatId: id, newAssignee: userId }, user }) =>
      userId === null ? undefined : { id, command: includeInChat({ userId }), ...onBehalfOf(user) },
  },
});

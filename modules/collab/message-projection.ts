// `app:{core}:collab:message:v1:<messageId>`: each message, found by its chat in the chat's order, and by its
// words. Editing and deleting change what is shown; what its tags did stays.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { messageDeleted, messageEdited, messagePosted } from './chat-events.ts';
import { wordGroup, wordsOf } from './message-words.ts';

export interface MessageDocument {
  readonly messageId: string;
  readonly chatId: string;
  readonly authorId: string;
  readonly content: string;
  readonly timestamp: string;
  /** Its place in the chat. */
  readonly revision: number;
  readonly inReplyTo?: string;
  readonly editedAt?: string;
}

type Posted = ProjectedEvent<ReturnType<typeof messagePosted.parse>>;
type Edited = ProjectedEvent<ReturnType<typeof messageEdited.parse>>;
type Deleted = ProjectedEvent<ReturnType<typeof messageDeleted.parse>>;

export const messageProjection = projection({
  name: 'sub:collab:message-projection:v1',
  readModel: readModel<MessageDocument>({
    bc: 'collab',
    aggregate: 'message',
    version: 1,
    groups: {
      chat: ({ chatId, revision }) => ({ [chatId]: revision }),
      word: ({ chatId, content, revision }) =>
        Object.fromEntries(wordsOf(content).map((word) => [wordGroup(chatId, word), revision])),
    },
  }),
  id: ({ payload }) => (payload as Posted['payload']).messageId,
  on: {
    'chat.message-posted.v1': (_before, { payload, revision }: Posted) => {
      const { inReplyTo, ...message } = payload;
      return { ...message, revision, ...(inReplyTo === undefined ? {} : { inReplyTo }) };
    },
    'chat.message-edited.v1': (before, { payload: { content, timestamp } }: Edited) =>
      before === null ? null : { ...before, content, editedAt: timestamp },
    'chat.message-deleted.v1': (_before, _event: Deleted) => null,
  },
});

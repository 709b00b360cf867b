// What is said in chats: this is where every chain of events begins.

import { Type } from 'millrace/contracts';
import type { Route } from 'millrace/platform';
import { deleteMessage, editMessage, messagePosted, postMessage } from '../chat-events.ts';
import { messagesOf, searchMessages } from '../chat-queries.ts';
import { collabLimits } from '../fields.ts';
import { messageProjection, type MessageDocument } from '../message-projection.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { flowHeader, idText, repeatableShown, type MakeEndpoint } from './collab-endpoint.ts';
import { collabErrors, rateLimitHeaders, rateLimitShown } from './collab-errors.ts';
import { pageAnswer, pageLimits, pageQuery, pageSchema } from './collab-page.ts';
import { messageSchema } from './collab-schemas.ts';
import { aliases } from './endpoints.ts';
import type { MessageLimiter } from './message-limiter.ts';
import type { Reach } from './reach.ts';

const tag = 'collab: messages';
const params = Type.Object({ id: idText });
const content = Type.Object(
  { content: Type.String({ minLength: 1, maxLength: collabLimits.messageBytesMax }) },
  { additionalProperties: false },
);

export function messageRoutes(
  endpoint: MakeEndpoint,
  {
    reach,
    documents,
    limiter,
  }: {
    readonly reach: Reach;
    readonly documents: CollabDocuments;
    readonly limiter: MessageLimiter;
  },
): readonly Route[] {
  const list = endpoint('listMessages', {
    summary: 'Messages of a chat, the newest first; or those that hold all words of a search',
    tag,
    params,
    query: Type.Object({
      ...pageQuery,
      order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Default: desc.' })),
      search: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    }),
    answers: { 200: { description: 'A page', schema: pageSchema(messageSchema) } },
    async handle({ params: { id }, query }, { me, rule }) {
      await reach.chat(me, id, rule);
      const { limit = pageLimits.default, cursor, search, order } = query;
      const asked = { tenant: me.tenant, chatId: id, limit, cursor };
      const direction = order === 'asc' ? 'ascending' : 'descending';
      const page =
        search === undefined
          ? await messagesOf(documents.messages, { ...asked, direction })
          : await searchMessages(documents.messages, { ...asked, text: search });
      return pageAnswer(
        page.items.map(({ document }) => shown(document)),
        page.cursor,
      );
    },
  });
  const post = endpoint('postMessage', {
    summary: 'Posts a message; its tags are worked on behind it',
    tag,
    params,
    headersShown: repeatableShown,
    body: content,
    answers: {
      201: {
        description: 'The message',
        schema: messageSchema,
        headers: { 'X-Correlation-Id': 'The flow of everything that follows.', ...rateLimitShown },
      },
      429: {
        description: 'More messages within a minute than the limit allows (60)',
        schema: collabErrors.schema,
        headers: { 'Retry-After': 'Seconds.', ...rateLimitShown },
      },
    },
    async handle({ params: { id }, body }, { me, rule, send, newId }) {
      await reach.chat(me, id, rule);
      const rate = limiter.take(me);
      const { id: messageId, key } = newId('post-message');
      const message = { messageId, authorId: me.userId, content: body.content };
      const outcome = await send({ id, command: postMessage(message), key });
      const posted = outcome.events.find(({ type }) => type === messagePosted.type);
      return {
        status: 201,
        headers: { ...flowHeader(outcome), ...rateLimitHeaders(rate) },
        body: posted?.payload,
      };
    },
  });

  return [
    list,
    post,
    { ...list, path: aliases.listMessages },
    { ...post, path: aliases.postMessage },
    endpoint('editMessage', {
      summary: 'Changes a message: its author within five minutes, or an admin of the chat',
      description: 'What its tags did stays as it is.',
      tag,
      params,
      body: content,
      answers: { 200: { description: 'The message', schema: messageSchema } },
      async handle({ params: { id: messageId }, body }, { me, rule, send }) {
        const message = await reach.message(me, messageId, rule);
        const outcome = await send({
          id: message.chatId,
          command: editMessage({ messageId, by: me.userId, content: body.content }),
        });
        await documents.settled(messageProjection, outcome.position);
        const edited = await documents.fresh(messageProjection, me.tenant, messageId);
        return { headers: flowHeader(outcome), body: shown(edited ?? message) };
      },
    }),
    endpoint('deleteMessage', {
      summary: 'Deletes a message: its author within five minutes, or an admin of the chat',
      tag,
      params,
      answers: { 204: { description: 'Done' } },
      async handle({ params: { id: messageId } }, { me, rule, send }) {
        const { chatId } = await reach.message(me, messageId, rule);
        const command = deleteMessage({ messageId, by: me.userId });
        const outcome = await send({ id: chatId, command });
        await documents.settled(messageProjection, outcome.position);
        return { status: 204, headers: flowHeader(outcome) };
      },
    }),
  ];
}

function shown({ revision: _place, ...message }: MessageDocument): object {
  return message;
}

// Routes of chats, their participants and their messages.

import { Type } from 'millrace/contracts';
import type { Route } from 'millrace/platform';
import {
  createChat,
  joinChat,
  leaveChat,
  postMessage,
  deleteMessage,
  editMessage,
  messagePosted,
} from '../chat-events.ts';
import {
  chatProjection,
  visibleChats,
  messagesOf,
  searchMessages,
  messageProjection,
  type MessageDocument,
} from '../chat-read-models.ts';
import { collabLimits } from '../fields.ts';
import { chatRole, workspaceRole, type Reach } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import {
  flowHeader,
  idText,
  repeatableShown,
  type CommandOutcome,
  type MakeEndpoint,
  aliases,
} from './endpoints.ts';
import {
  invalid,
  notFound,
  rateLimitHeaders,
  collabErrors,
  rateLimitShown,
} from './collab-errors.ts';
import {
  pageAnswer,
  pageLimits,
  pageOfList,
  pageQuery,
  pageSchema,
  chatSchema,
  chatTypeSchema,
  participantSchema,
  roleSchema,
  messageSchema,
} from './collab-schemas.ts';
import type { MessageLimiter } from './message-limiter.ts';

const tag = 'collab: chats';
const params = Type.Object({ id: idText });

export function chatRoutes(
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
  const settled = ({ position }: CommandOutcome): Promise<void> =>
    documents.settled(chatProjection, position);
  const participantOf = async (tenant: string, chatId: string, userId: string) => {
    const found = await documents.fresh(chatProjection, tenant, chatId);
    return found?.participants.find((each) => each.userId === userId);
  };

  return [
    endpoint('createChat', {
      summary: 'Opens a chat; one with a type other than discussion is a task from the beginning',
      tag,
      params: Type.Object({ w: idText }),
      body: Type.Object(
        {
          type: Type.Optional(chatTypeSchema),
          title: Type.String({ minLength: 1, maxLength: collabLimits.titleCharsMax }),
          isPublic: Type.Optional(Type.Boolean({ description: 'Default: true.' })),
          initialMessage: Type.Optional(
            Type.String({ minLength: 1, maxLength: collabLimits.messageBytesMax }),
          ),
          participants: Type.Optional(
            Type.Array(idText, {
              maxItems: 1_000,
              description: 'Ids of members of the workspace.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      headersShown: repeatableShown,
      answers: { 201: { description: 'The chat', schema: chatSchema } },
      async handle({ params: { w }, body }, { me, rule, send, newId }) {
        const workspace = await reach.workspace(me, w, rule);
        const { type = 'discussion', title, isPublic = true, participants = [] } = body;
        const strange = participants.find((each) => workspaceRole(workspace, each) === 'stranger');
        if (strange !== undefined) throw invalid('participants', `${strange} is no member`);
        const { initialMessage } = body;
        const rate = initialMessage === undefined ? undefined : limiter.take(me);
        const { id, key } = newId('create-chat');
        const subject = { workspaceId: w, type, title, isPublic };
        const command = createChat({ ...subject, participants, createdBy: me.userId });
        const outcome = await send({ id, command, key });
        const flow = flowHeader(outcome);
        if (initialMessage !== undefined) {
          // The same flow, and the same message if the whole is repeated.
          const first = newId('post-initial-message');
          await send({
            id,
            command: postMessage({
              messageId: first.id,
              authorId: me.userId,
              content: initialMessage,
            }),
            key: first.key,
            correlationId: flow['x-correlation-id'],
          });
        }
        await settled(outcome);
        const { chat } = await reach.chat(me, id, 'chat.see');
        return { status: 201, headers: { ...flow, ...rateLimitHeaders(rate) }, body: chat };
      },
    }),
    endpoint('listChats', {
      summary: 'The public chats of a workspace, and the private ones that one takes part in',
      tag,
      params: Type.Object({ w: idText }),
      query: Type.Object(pageQuery),
      answers: { 200: { description: 'A page, newest first', schema: pageSchema(chatSchema) } },
      async handle({ params: { w }, query }, { me, rule }) {
        await reach.workspace(me, w, rule);
        const { limit = pageLimits.default, cursor } = query;
        const { tenant, userId } = me;
        const asked = { tenant, userId, workspaceId: w, limit, cursor };
        const page = await visibleChats(documents.chats, asked);
        return pageAnswer(page);
      },
    }),
    endpoint('getChat', {
      summary: 'A chat',
      tag,
      params,
      answers: { 200: { description: 'It', schema: chatSchema } },
      async handle({ params: { id } }, { me, rule }) {
        return { body: (await reach.chat(me, id, rule)).chat };
      },
    }),
    endpoint('listParticipants', {
      summary: 'Who takes part in a chat',
      tag,
      params,
      query: Type.Object(pageQuery),
      answers: { 200: { description: 'A page', schema: pageSchema(participantSchema) } },
      async handle({ params: { id }, query }, { me, rule }) {
        const { chat } = await reach.chat(me, id, rule);
        return pageOfList(chat.participants, query, ({ userId }) => userId);
      },
    }),
    endpoint('addParticipant', {
      summary: 'Takes a member of the workspace into a chat; of oneself: joins a public one',
      tag,
      params,
      body: Type.Object(
        { userId: idText, role: Type.Optional(roleSchema) },
        { additionalProperties: false },
      ),
      answers: { 201: { description: 'The participant', schema: participantSchema } },
      async handle({ params: { id }, body }, { me, rule, send }) {
        const { userId, role = 'member' } = body;
        const isSelf = userId === me.userId && role === 'member';
        const { workspace, chat } = await reach.chat(me, id, isSelf ? 'chat.join' : rule);
        if (workspaceRole(workspace, userId) === 'stranger') throw notFound('member');
        // Whoever is an admin already does not become less by joining.
        const isIn = isSelf && chatRole(chat, workspace, userId) !== 'visitor';
        const command = joinChat({ userId, role, by: me.userId });
        const outcome = isIn ? undefined : await send({ id, command });
        if (outcome !== undefined) await settled(outcome);
        return {
          status: 201,
          headers: outcome === undefined ? {} : flowHeader(outcome),
          body: await participantOf(me.tenant, id, userId),
        };
      },
    }),
    endpoint('removeParticipant', {
      summary: 'Takes somebody out of a chat; of oneself: leaves',
      tag,
      params: Type.Object({ id: idText, userId: idText }),
      answers: { 204: { description: 'Done' } },
      async handle({ params: { id, userId } }, { me, rule, send }) {
        const action = userId === me.userId ? 'chat.leave' : rule;
        const { chat } = await reach.chat(me, id, action);
        if (!chat.participants.some((each) => each.userId === userId)) {
          throw notFound('participant');
        }
        const outcome = await send({ id, command: leaveChat({ userId, by: me.userId }) });
        await settled(outcome);
        return { status: 204, headers: flowHeader(outcome) };
      },
    }),
  ];
}

const messageTag = 'collab: messages';
const messageParams = Type.Object({ id: idText });
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
    tag: messageTag,
    params: messageParams,
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
      return pageAnswer(page, shownMessage);
    },
  });
  const post = endpoint('postMessage', {
    summary: 'Posts a message; its tags are worked on behind it',
    tag: messageTag,
    params: messageParams,
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
      tag: messageTag,
      params: messageParams,
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
        return { headers: flowHeader(outcome), body: shownMessage(edited ?? message) };
      },
    }),
    endpoint('deleteMessage', {
      summary: 'Deletes a message: its author within five minutes, or an admin of the chat',
      tag: messageTag,
      params: messageParams,
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

function shownMessage({ revision: _place, ...message }: MessageDocument): object {
  return message;
}

// Routes of chats, their participants and their messages.

import { Type } from 'millrace/contracts';
import type { Route } from 'millrace/platform';
import {
  createChat,
  deleteMessage,
  editMessage,
  joinChat,
  leaveChat,
  messagePosted,
  postMessage,
} from '../chat-events.ts';
import {
  chatProjection,
  messageProjection,
  messagesOf,
  searchMessages,
  visibleChats,
  type MessageDocument,
} from '../chat-read-models.ts';
import {
  chatSchema,
  chatTypeSchema,
  messageSchema,
  participantSchema,
  roleSchema,
} from '../documents.ts';
import { collabLimits } from '../fields.ts';
import { pageResponse, pageLimits, pageOfList, pageQuery, pageSchema } from '../pages.ts';
import { chatRole, workspaceRole, type ResourceReach } from './access.ts';
import type { CollabDocuments } from './collab-documents.ts';
import {
  collabErrors,
  invalid,
  notFound,
  rateLimitHeaders,
  rateLimitShown,
} from './collab-errors.ts';
import { aliases, bodyOf, idText, repeatableShown, type EndpointMaker } from './endpoints.ts';
import type { MessageLimiter } from './message-limiter.ts';

interface ChatRouteParts {
  readonly reach: ResourceReach;
  readonly documents: CollabDocuments;
  readonly limiter: MessageLimiter;
}

export function chatRoutes(endpointsOf: EndpointMaker, parts: ChatRouteParts): readonly Route[] {
  const { reach, documents, limiter } = parts;
  const endpoint = endpointsOf('collab: chats');
  return [
    endpoint('createChat', {
      summary: 'Create a chat; any type except discussion also creates a task',
      body: bodyOf({
        type: Type.Optional(chatTypeSchema),
        title: Type.String({ minLength: 1, maxLength: collabLimits.titleCharsMax }),
        isPublic: Type.Optional(Type.Boolean({ description: 'Default: true.' })),
        initialMessage: Type.Optional(
          Type.String({ minLength: 1, maxLength: collabLimits.messageBytesMax }),
        ),
        participants: Type.Optional(
          Type.Array(idText, {
            maxItems: 1_000,
            description: 'User ids of workspace members.',
          }),
        ),
      }),
      headersShown: repeatableShown,
      responses: { 201: { description: 'The chat', schema: chatSchema } },
      async handle({ params: { w }, body }, { me, rule, send, newId }) {
        const workspace = await reach.workspace(me, w, rule);
        const { type = 'discussion', title, isPublic = true, participants = [] } = body;
        const stranger = participants.find((id) => workspaceRole(workspace, id) === 'stranger');
        if (stranger !== undefined) {
          throw invalid('participants', `${stranger} is not a member of the workspace.`);
        }
        const { initialMessage: content } = body;
        const rate = content === undefined ? undefined : limiter.take(me);
        const { id, key } = newId('create-chat');
        const { userId } = me;
        const subject = { workspaceId: w, type, title, isPublic };
        await send({
          id,
          command: createChat({ ...subject, participants, createdBy: userId }),
          key,
          visibleIn: chatProjection,
        });
        if (content !== undefined) {
          const message = newId('post-initial-message');
          const command = postMessage({ messageId: message.id, authorId: userId, content });
          await send({ id, command, key: message.key });
        }
        const { chat } = await reach.chat(me, id, 'chat.see');
        return { status: 201, headers: rateLimitHeaders(rate), body: chat };
      },
    }),
    endpoint('listChats', {
      summary: 'List the public chats of a workspace and the private chats of the caller',
      query: Type.Object(pageQuery),
      responses: { 200: { description: 'Newest first', schema: pageSchema(chatSchema) } },
      async handle({ params: { w }, query, memory }, { me: { tenant, userId }, rule }) {
        await reach.workspace({ tenant, userId }, w, rule);
        const { limit = pageLimits.default, cursor } = query;
        const page = await memory.page({ limit, cursor }, (part) =>
          visibleChats(documents.chats, { ...part, tenant, userId, workspaceId: w }),
        );
        return pageResponse(page);
      },
    }),
    endpoint('getChat', {
      summary: 'Get a chat',
      responses: { 200: { description: 'The chat', schema: chatSchema } },
      async handle({ params: { id } }, { me, rule }) {
        return { body: (await reach.chat(me, id, rule)).chat };
      },
    }),
    endpoint('listParticipants', {
      summary: 'List the participants of a chat',
      query: Type.Object(pageQuery),
      responses: { 200: { description: 'Participants', schema: pageSchema(participantSchema) } },
      async handle({ params: { id }, query }, { me, rule }) {
        const { chat } = await reach.chat(me, id, rule);
        return pageOfList(chat.participants, query, ({ userId }) => userId);
      },
    }),
    endpoint('addParticipant', {
      summary: 'Add a workspace member to a chat; users join public chats by adding themselves',
      body: bodyOf({ userId: idText, role: Type.Optional(roleSchema) }),
      responses: { 201: { description: 'The participant', schema: participantSchema } },
      async handle({ params: { id }, body }, { me, rule, send }) {
        const { userId, role = 'member' } = body;
        const isSelf = userId === me.userId && role === 'member';
        const { workspace, chat } = await reach.chat(me, id, isSelf ? 'chat.join' : rule);
        if (workspaceRole(workspace, userId) === 'stranger') throw notFound('member');
        // Joining must not demote a chat admin.
        const hasJoined = isSelf && chatRole(chat, workspace, userId) !== 'visitor';
        if (!hasJoined) {
          const command = joinChat({ userId, role, by: me.userId });
          await send({ id, command, visibleIn: chatProjection });
        }
        const joined = await documents.fresh(chatProjection, me.tenant, id);
        const participant = joined?.participants.find((each) => each.userId === userId);
        return { status: 201, body: participant };
      },
    }),
    endpoint('removeParticipant', {
      summary: 'Remove a participant from a chat; participants leave by removing themselves',
      responses: { 204: { description: 'Removed' } },
      async handle({ params: { id, userId } }, { me, rule, send }) {
        const action = userId === me.userId ? 'chat.leave' : rule;
        const { chat } = await reach.chat(me, id, action);
        if (!chat.participants.some((participant) => participant.userId === userId)) {
          throw notFound('participant');
        }
        const command = leaveChat({ userId, by: me.userId });
        await send({ id, command, visibleIn: chatProjection });
        return { status: 204 };
      },
    }),
    ...messageRoutes(endpointsOf('collab: messages'), parts),
  ];
}

const content = bodyOf({
  content: Type.String({ minLength: 1, maxLength: collabLimits.messageBytesMax }),
});

function messageRoutes(
  endpoint: ReturnType<EndpointMaker>,
  { reach, documents, limiter }: ChatRouteParts,
): readonly Route[] {
  const list = endpoint('listMessages', {
    summary: 'List the messages of a chat, or those that contain all words of a search',
    query: Type.Object({
      ...pageQuery,
      order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Default: desc.' })),
      search: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    }),
    responses: { 200: { description: 'Newest first', schema: pageSchema(messageSchema) } },
    async handle({ params: { id }, query, memory }, { me, rule }) {
      await reach.chat(me, id, rule);
      const { limit = pageLimits.default, cursor, search, order } = query;
      const direction = order === 'asc' ? 'ascending' : 'descending';
      const page = await memory.page({ limit, cursor }, (part) => {
        const request = { ...part, tenant: me.tenant, chatId: id };
        return search === undefined
          ? messagesOf(documents.messages, { ...request, direction })
          : searchMessages(documents.messages, { ...request, text: search });
      });
      return pageResponse(page, withoutRevision);
    },
  });
  const post = endpoint('postMessage', {
    summary: 'Post a message; its tags are applied asynchronously',
    headersShown: repeatableShown,
    body: content,
    responses: {
      201: {
        description: 'The message',
        schema: messageSchema,
        headers: {
          'X-Correlation-Id': 'The flow of all events that follow from the message.',
          ...rateLimitShown,
        },
      },
      429: {
        description: 'Message limit reached (60 per minute)',
        schema: collabErrors.schema,
        headers: { 'Retry-After': 'Seconds.', ...rateLimitShown },
      },
    },
    async handle({ params: { id }, body }, { me, rule, send, newId }) {
      await reach.chat(me, id, rule);
      const rate = limiter.take(me);
      const { id: messageId, key } = newId('post-message');
      const message = { messageId, authorId: me.userId, content: body.content };
      const { events } = await send({ id, command: postMessage(message), key });
      const posted = events.find(({ type }) => type === messagePosted.type);
      return { status: 201, headers: rateLimitHeaders(rate), body: posted?.payload };
    },
  });

  return [
    list,
    post,
    { ...list, path: aliases.listMessages },
    { ...post, path: aliases.postMessage },
    endpoint('editMessage', {
      summary: 'Edit a message: the author within five minutes, or an admin of the chat',
      description: 'The effects of its tags remain.',
      body: content,
      responses: { 200: { description: 'The message', schema: messageSchema } },
      async handle({ params: { id: messageId }, body }, { me, rule, send }) {
        const message = await reach.message(me, messageId, rule);
        await send({
          id: message.chatId,
          command: editMessage({
            messageId,
            by: me.userId,
            content: body.content,
            authorId: message.authorId,
          }),
          visibleIn: messageProjection,
        });
        const edited = await documents.fresh(messageProjection, me.tenant, messageId);
        return { body: withoutRevision(edited ?? message) };
      },
    }),
    endpoint('deleteMessage', {
      summary: 'Delete a message: the author within five minutes, or an admin of the chat',
      responses: { 204: { description: 'Deleted' } },
      async handle({ params: { id: messageId } }, { me, rule, send }) {
        const { chatId: id } = await reach.message(me, messageId, rule);
        const command = deleteMessage({ messageId, by: me.userId });
        await send({ id, command, visibleIn: messageProjection });
        return { status: 204 };
      },
    }),
  ];
}

function withoutRevision({ revision: _revision, ...message }: MessageDocument): object {
  return message;
}

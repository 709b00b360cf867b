// Read models of chats and of messages, and the queries over them.

import { createHash } from 'node:crypto';
import { MillraceError } from 'millrace/foundation';
import {
  projection,
  readModel,
  type DocumentQueries,
  type Found,
  type Page,
} from 'millrace/projections';
import { isForgotten } from 'millrace/store';
import type {
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  messageDeleted,
  messageEdited,
  messagePosted,
  participantJoined,
} from './chat-events.ts';
import type { ChatDocument } from './documents.ts';
import { filteredPage, pageLimits, type PageRequest } from './pages.ts';
import { applyErased } from './personal-text.ts';
import { update, type Projected } from './projected.ts';

/** The group of the private chats of a user in a workspace. */
export function inWorkspace(workspaceId: string, userId: string): string {
  return `${workspaceId}.${userId}`;
}

const chatChanges = {
  'chat.created.v1': (
    _before: ChatDocument | null,
    { payload, aggregate }: Projected<typeof chatCreated>,
  ): ChatDocument => {
    const { timestamp, ...chat } = payload;
    return { ...chat, chatId: aggregate.id, createdAt: timestamp, participants: [] };
  },
  'chat.participant-joined.v1': update<ChatDocument, Projected<typeof participantJoined>>(
    (chat, { payload, occurredAt }) => ({
      ...chat,
      participants: [
        ...chat.participants.filter(({ userId }) => userId !== payload.userId),
        { ...payload, joinedAt: occurredAt },
      ],
    }),
  ),
  'chat.participant-left.v1': update<ChatDocument, Projected<typeof participantJoined>>(
    (chat, { payload }) => ({
      ...chat,
      participants: chat.participants.filter(({ userId }) => userId !== payload.userId),
    }),
  ),
  'chat.type-changed.v1': update<ChatDocument, Projected<typeof chatTypeChanged>>(
    (chat, { payload }) => ({ ...chat, ...payload }),
  ),
  'chat.title-changed.v1': update<ChatDocument, Projected<typeof chatTitleChanged>>(
    (chat, { payload }) => ({ ...chat, ...payload }),
  ),
};

export const chatProjection = projection({
  name: 'sub:collab:chat-projection:v1',
  readModel: readModel<ChatDocument>({
    bc: 'collab',
    aggregate: 'chat',
    version: 1,
    // Each chat is in exactly one of the two groups, so a user sees the union of both.
    groups: {
      public: ({ isPublic, workspaceId, createdAt }) =>
        isPublic ? { [workspaceId]: Date.parse(createdAt) } : {},
      private: ({ isPublic, workspaceId, participants, createdAt }) =>
        isPublic
          ? {}
          : Object.fromEntries(
              participants.map(({ userId }) => [
                inWorkspace(workspaceId, userId),
                Date.parse(createdAt),
              ]),
            ),
    },
  }),
  on: chatChanges,
  onForgotten: applyErased<ChatDocument>(chatChanges),
});

export interface MessageDocument {
  readonly messageId: string;
  readonly chatId: string;
  readonly authorId: string;
  readonly content: string;
  readonly timestamp: string;
  /** Revision of the message in the stream of its chat. */
  readonly revision: number;
  readonly inReplyTo?: string | undefined;
  readonly editedAt?: string | undefined;
}

/** Found by chat, in order of posting, and by word. Edits and deletions do not undo the effects of tags. */
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
  filter: { category: 'collab.chat.v1' },
  id: ({ payload, headers }) =>
    String(
      isForgotten(payload)
        ? headers?.['messageId']
        : (payload as { readonly messageId: string }).messageId,
    ),
  on: {
    'chat.message-posted.v1': (
      _before,
      { payload, revision }: Projected<typeof messagePosted>,
    ) => ({
      ...payload,
      revision,
    }),
    'chat.message-edited.v1': update<MessageDocument, Projected<typeof messageEdited>>(
      (message, { payload: { content, timestamp } }) => ({
        ...message,
        content,
        editedAt: timestamp,
      }),
    ),
    'chat.message-deleted.v1': (_before, _event: Projected<typeof messageDeleted>) => null,
  },
  onForgotten: () => null,
});

/** How many messages a search for several words reads at most before it returns what it has found. */
const searchedMax = 1_000;

/** The public chats of a workspace and the private chats of the user, newest first. */
export async function visibleChats(
  chats: DocumentQueries<ChatDocument>,
  request: PageRequest & { readonly workspaceId: string; readonly userId: string },
): Promise<Page<ChatDocument>> {
  const { tenant, workspaceId, userId, limit = pageLimits.default } = request;
  const after = request.cursor === undefined ? undefined : parseCursor(request.cursor);
  const read = (range: string, group: string): Promise<readonly Found<ChatDocument>[]> =>
    // Read one extra item to detect a next page.
    readAfter(chats, { tenant, range, group, after, count: limit + 1 });
  const found = await Promise.all([
    read('public', workspaceId),
    read('private', inWorkspace(workspaceId, userId)),
  ]);
  const sorted = found.flat().toSorted((a, b) => compare(sortKeyOf(b), sortKeyOf(a)));
  const items = sorted.slice(0, limit);
  const last = items.at(-1);
  const hasMore = sorted.length > limit && last !== undefined;
  return { items, cursor: hasMore ? formatCursor(sortKeyOf(last)) : undefined };
}

/** The sort key of a chat, the same in both groups. */
interface ChatSortKey {
  readonly ms: number;
  readonly id: string;
}

function sortKeyOf({ id, document }: Found<ChatDocument>): ChatSortKey {
  return { ms: Date.parse(document.createdAt), id };
}

function compare(a: ChatSortKey, b: ChatSortKey): number {
  return a.ms - b.ms || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Chats of one group, newest first, after a position. */
async function readAfter(
  chats: DocumentQueries<ChatDocument>,
  request: {
    readonly tenant: string;
    readonly range: string;
    readonly group: string;
    readonly after: ChatSortKey | undefined;
    readonly count: number;
  },
): Promise<readonly Found<ChatDocument>[]> {
  const { tenant, range, group, after, count } = request;
  const found: Found<ChatDocument>[] = [];
  let cursor: string | undefined;
  do {
    const page = await chats.byRange(tenant, range, {
      group,
      limit: count,
      cursor,
      direction: 'descending',
      to: after?.ms,
    });
    // The range includes chats of the same millisecond that the previous page already returned.
    found.push(
      ...page.items.filter((chat) => after === undefined || compare(sortKeyOf(chat), after) < 0),
    );
    ({ cursor } = page);
  } while (cursor !== undefined && found.length < count);
  return found.slice(0, count);
}

function formatCursor({ ms, id }: ChatSortKey): string {
  return Buffer.from(JSON.stringify([ms, id])).toString('base64url');
}

function parseCursor(cursor: string): ChatSortKey {
  const [, ms, id] =
    /^\[(-?\d{1,16}),"([A-Za-z0-9._-]+)"\]$/.exec(
      Buffer.from(cursor, 'base64url').toString('latin1'),
    ) ?? [];
  if (ms !== undefined && id !== undefined) return { ms: Number(ms), id };
  const shown = cursor.slice(0, 60);
  throw new MillraceError('CURSOR_INVALID', `Invalid cursor "${shown}".`, {
    details: { cursor: shown },
  });
}

/** Messages of a chat. Default: newest first. */
export function messagesOf(
  messages: DocumentQueries<MessageDocument>,
  request: PageRequest & {
    readonly chatId: string;
    readonly direction?: 'ascending' | 'descending' | undefined;
  },
): Promise<Page<MessageDocument>> {
  const { tenant, chatId, direction = 'descending', limit = pageLimits.default, cursor } = request;
  return messages.byRange(tenant, 'chat', { group: chatId, direction, limit, cursor });
}

/** Messages of a chat that contain every word of the text, newest first. */
export function searchMessages(
  messages: DocumentQueries<MessageDocument>,
  request: PageRequest & { readonly chatId: string; readonly text: string },
): Promise<Page<MessageDocument>> {
  const { tenant, chatId, text } = request;
  const [first, ...others] = wordsOf(text);
  if (first === undefined) return Promise.resolve({ items: [], cursor: undefined });
  const group = wordGroup(chatId, first);
  return filteredPage(
    request,
    searchedMax,
    (page) => messages.byRange(tenant, 'word', { ...page, group, direction: 'descending' }),
    ({ document }) => {
      const words = new Set(wordsOf(document.content));
      return others.every((word) => words.has(word));
    },
  );
}

/** How many different words of a message are indexed. */
const wordsMax = 200;
const wordCharsMax = 40;
const wordPattern = /[\p{L}\p{M}\p{N}_]+/gu;

/** The distinct words of a text in lower case, in order. */
export function wordsOf(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(wordPattern)) {
    found.add(word.slice(0, wordCharsMax));
    if (found.size === wordsMax) break;
  }
  return [...found];
}

/** The group of a word in a chat; hashed, because more people can read keys than the chat. */
function wordGroup(chatId: string, word: string): string {
  return createHash('sha256').update(`${chatId} ${word}`).digest('base64url').slice(0, 22);
}

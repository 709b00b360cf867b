// Read models of chats and of messages, and the queries over them.

import {
  projection,
  readModel,
  type ProjectedEvent,
  type DocumentQueries,
  type Found,
  type Page,
} from 'millrace/projections';
import type { ChatType, Role } from './fields.ts';
import type {
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  participantJoined,
  messageDeleted,
  messageEdited,
  messagePosted,
} from './chat-events.ts';
import { MillraceError } from 'millrace/foundation';
import { createHash } from 'node:crypto';

export interface ParticipantDocument {
  readonly userId: string;
  readonly role: Role;
  readonly joinedAt: string;
}

export interface ChatDocument {
  readonly chatId: string;
  readonly workspaceId: string;
  readonly type: ChatType;
  readonly title: string;
  readonly isPublic: boolean;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly participants: readonly ParticipantDocument[];
}

type Created = ProjectedEvent<ReturnType<typeof chatCreated.parse>>;
type Participant = ProjectedEvent<ReturnType<typeof participantJoined.parse>>;
type Retyped = ProjectedEvent<ReturnType<typeof chatTypeChanged.parse>>;
type Retitled = ProjectedEvent<ReturnType<typeof chatTitleChanged.parse>>;

/** Whose private chats of which workspace. */
export function inWorkspace(workspaceId: string, userId: string): string {
  return `${workspaceId}.${userId}`;
}

export const chatProjection = projection({
  name: 'sub:collab:chat-projection:v1',
  readModel: readModel<ChatDocument>({
    bc: 'collab',
    aggregate: 'chat',
    version: 1,
    groups: {
      // A chat is in the first one or in the second, so that what somebody sees is the two together.
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
  on: {
    'chat.created.v1': (_before, { payload, aggregate }: Created) => {
      const { timestamp, ...chat } = payload;
      return { ...chat, chatId: aggregate.id, createdAt: timestamp, participants: [] };
    },
    'chat.participant-joined.v1': (before, { payload, occurredAt }: Participant) =>
      before === null
        ? null
        : {
            ...before,
            participants: [
              ...before.participants.filter(({ userId }) => userId !== payload.userId),
              { ...payload, joinedAt: occurredAt },
            ],
          },
    'chat.participant-left.v1': (before, { payload }: Participant) =>
      before === null
        ? null
        : {
            ...before,
            participants: before.participants.filter(({ userId }) => userId !== payload.userId),
          },
    'chat.type-changed.v1': (before, { payload }: Retyped) =>
      before === null ? null : { ...before, ...payload },
    'chat.title-changed.v1': (before, { payload }: Retitled) =>
      before === null ? null : { ...before, ...payload },
  },
});

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

export interface PageRequest {
  readonly tenant: string;
  readonly limit?: number | undefined;
  /** Of the page before. */
  readonly cursor?: string | undefined;
}

const pageSize = 50;
/** So many messages are looked at for one page of a search for several words. */
const searchedMax = 1_000;

/** The public ones of the workspace and the private ones that the user takes part in, newest first. */
export async function visibleChats(
  chats: DocumentQueries<ChatDocument>,
  asked: PageRequest & { readonly workspaceId: string; readonly userId: string },
): Promise<Page<ChatDocument>> {
  const { tenant, workspaceId, userId, limit = pageSize } = asked;
  const after = asked.cursor === undefined ? undefined : fromCursor(asked.cursor);
  const read = (range: string, group: string): Promise<readonly Found<ChatDocument>[]> =>
    // One more than the page has tells whether there is another one.
    readAfter(chats, { tenant, range, group, after, count: limit + 1 });
  const found = await Promise.all([
    read('public', workspaceId),
    read('private', inWorkspace(workspaceId, userId)),
  ]);
  const sorted = found.flat().toSorted((a, b) => compare(placeOf(b), placeOf(a)));
  const items = sorted.slice(0, limit);
  const last = items.at(-1);
  const isMore = sorted.length > limit && last !== undefined;
  return { items, cursor: isMore ? toCursor(placeOf(last)) : undefined };
}

/** Where a chat stands among the others. */
interface Place {
  readonly ms: number;
  readonly id: string;
}

function placeOf({ id, document }: Found<ChatDocument>): Place {
  return { ms: Date.parse(document.createdAt), id };
}

function compare(a: Place, b: Place): number {
  return a.ms - b.ms || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Of one group, newest first, behind a place that is the same for several groups. */
async function readAfter(
  chats: DocumentQueries<ChatDocument>,
  asked: {
    readonly tenant: string;
    readonly range: string;
    readonly group: string;
    readonly after: Place | undefined;
    readonly count: number;
  },
): Promise<readonly Found<ChatDocument>[]> {
  const { tenant, range, group, after, count } = asked;
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
    // Those of the same millisecond that the page before had.
    found.push(
      ...page.items.filter((each) => after === undefined || compare(placeOf(each), after) < 0),
    );
    ({ cursor } = page);
  } while (cursor !== undefined && found.length < count);
  return found.slice(0, count);
}

function toCursor({ ms, id }: Place): string {
  return Buffer.from(JSON.stringify([ms, id])).toString('base64url');
}

function fromCursor(cursor: string): Place {
  const [, ms, id] =
    /^\[(-?\d{1,16}),"([A-Za-z0-9._-]+)"\]$/.exec(
      Buffer.from(cursor, 'base64url').toString('latin1'),
    ) ?? [];
  if (ms !== undefined && id !== undefined) return { ms: Number(ms), id };
  throw new MillraceError('CURSOR_INVALID', 'this is not the cursor of a page of chats', {
    details: { cursor: cursor.slice(0, 60) },
  });
}

/** Of one chat, the newest first; `ascending` from the oldest. */
export function messagesOf(
  messages: DocumentQueries<MessageDocument>,
  asked: PageRequest & {
    readonly chatId: string;
    readonly direction?: 'ascending' | 'descending';
  },
): Promise<Page<MessageDocument>> {
  const { tenant, chatId, direction = 'descending', limit = pageSize, cursor } = asked;
  return messages.byRange(tenant, 'chat', { group: chatId, direction, limit, cursor });
}

/** Those that hold every word of the text, the newest first. */
export async function searchMessages(
  messages: DocumentQueries<MessageDocument>,
  asked: PageRequest & { readonly chatId: string; readonly text: string },
): Promise<Page<MessageDocument>> {
  const { tenant, chatId, text, limit = pageSize } = asked;
  const [first, ...others] = wordsOf(text);
  if (first === undefined) return { items: [], cursor: undefined };
  const items: Found<MessageDocument>[] = [];
  let { cursor } = asked;
  for (let seen = 0; seen < searchedMax;) {
    // Never more than are missing: a cursor stands behind the last one that was read.
    const missing = limit - items.length;
    seen += missing;
    const page = await messages.byRange(tenant, 'word', {
      group: wordGroup(chatId, first),
      direction: 'descending',
      limit: missing,
      cursor,
    });
    const matching = page.items.filter(({ document }) => {
      const held = new Set(wordsOf(document.content));
      return others.every((word) => held.has(word));
    });
    items.push(...matching);
    ({ cursor } = page);
    if (cursor === undefined || items.length === limit) break;
  }
  return { items, cursor };
}

/** Of a message, the first so many different words can be searched for. */
const wordsMax = 200;
const wordCharsMax = 40;
const wordPattern = /[\p{L}\p{M}\p{N}_]+/gu;

/** Each once, in the order of the text. */
export function wordsOf(text: string): readonly string[] {
  const found = new Set<string>();
  for (const [each] of text.normalize('NFKC').toLowerCase().matchAll(wordPattern)) {
    found.add(each.slice(0, wordCharsMax));
    if (found.size === wordsMax) break;
  }
  return [...found];
}

/** Of the messages of a chat that hold a word. A hash: keys are seen by others than the chat is. */
export function wordGroup(chatId: string, word: string): string {
  return createHash('sha256').update(`${chatId} ${word}`).digest('base64url').slice(0, 22);
}

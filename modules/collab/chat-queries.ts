// Which chats somebody sees, and what was said in one.

import { MillraceError } from 'millrace/foundation';
import type { DocumentQueries, Found, Page } from 'millrace/projections';
import { inWorkspace, type ChatDocument } from './chat-projection.ts';
import type { MessageDocument } from './message-projection.ts';
import { wordGroup, wordsOf } from './message-words.ts';

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

// What a reader asks for: from where on it wants stored messages, and which messages it wants. Pure.

import { parseGoDuration } from './templates/go-duration.ts';
import { ntfyError } from './ntfy-problems.ts';
import { parsePriority, splitList, type RequestParams } from './request-params.ts';
import { isMessageId, type TopicMessage } from './topic-message.ts';

export type Since =
  | { readonly kind: 'none' }
  | { readonly kind: 'all' }
  /** The last message of each topic. */
  | { readonly kind: 'latest' }
  /** Messages after this one; all messages if it is unknown. */
  | { readonly kind: 'id'; readonly id: string }
  /** Unix seconds, inclusive. */
  | { readonly kind: 'time'; readonly seconds: number };

export function parseSince(
  text: string,
  { isPoll, nowMs }: { readonly isPoll: boolean; readonly nowMs: number },
): Since {
  if (text === '') return { kind: isPoll ? 'all' : 'none' };
  if (text === 'all' || text === 'latest' || text === 'none') return { kind: text };
  if (isMessageId(text)) return { kind: 'id', id: text };
  if (/^[-+]?\d{1,18}$/.test(text)) {
    const seconds = Number(text);
    // In ntfy, 0 stands for all and 1 for none.
    if (seconds === 0) return { kind: 'all' };
    return seconds === 1 ? { kind: 'none' } : { kind: 'time', seconds };
  }
  const spanMs = parseGoDuration(text);
  if (spanMs === undefined) throw ntfyError('sinceInvalid');
  return { kind: 'time', seconds: Math.floor((nowMs - spanMs) / 1_000) };
}

/** Undefined: all messages. */
export type MessageFilter = ((message: TopicMessage) => boolean) | undefined;

const priorityDefault = 3;

export function readFilter(params: RequestParams): MessageFilter {
  const { text } = params;
  const id = text(['x-id', 'id']);
  const message = text(['x-message', 'message', 'm']);
  const title = text(['x-title', 'title', 't']);
  const tags = splitList(text(['x-tags', 'tags', 'tag', 'ta']));
  const priorities = splitList(text(['x-priority', 'priority', 'prio', 'p'])).map(
    (each) => parsePriority(each) ?? 0,
  );
  if (`${id}${message}${title}` === '' && tags.length + priorities.length === 0) return undefined;
  return (each) =>
    (id === '' || each.id === id) &&
    (message === '' || each.message === message) &&
    (title === '' || each.title === title) &&
    (priorities.length === 0 || priorities.includes(each.priority ?? priorityDefault)) &&
    tags.every((tag) => each.tags?.includes(tag) === true);
}

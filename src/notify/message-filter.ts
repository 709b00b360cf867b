// Which messages a reader wants of those that its topics have.

import { parsePriority } from './parse-priority.ts';
import { splitList, type RequestParams } from './request-params.ts';
import type { TopicMessage } from './topic-message.ts';

/** Undefined: all of them. */
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

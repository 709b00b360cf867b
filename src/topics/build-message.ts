// Builds the published message from the parameters and the body. Pure.

import { attachedName, type MessageText } from './publish-body.ts';
import type { PublishParams } from './publish-params.ts';
import type { TopicAttachment, TopicMessage } from './topic-message.ts';

export interface MessageFacts {
  readonly id: string;
  readonly topic: string;
  readonly nowMs: number;
  readonly expiryMs: number;
  readonly attachment?: TopicAttachment | undefined;
}

export function buildMessage(
  params: PublishParams,
  text: MessageText,
  { id, topic, nowMs, expiryMs, attachment }: MessageFacts,
): TopicMessage {
  const time = params.deliverAt ?? Math.floor(nowMs / 1_000);
  const attached = attachment ?? attachedUrl(params);
  const { sequenceId } = params;
  return clean({
    id,
    ...(sequenceId === undefined || sequenceId === id ? {} : { sequence_id: sequenceId }),
    time,
    ...(params.isCached ? { expires: time + Math.floor(expiryMs / 1_000) } : {}),
    event: 'message',
    topic,
    ...(text.title === '' ? {} : { title: text.title }),
    message: text.message === '' ? 'triggered' : text.message,
    ...(text.priority === undefined ? {} : { priority: text.priority }),
    ...(params.tags.length === 0 ? {} : { tags: params.tags }),
    ...(params.click === '' ? {} : { click: params.click }),
    ...(params.icon === '' ? {} : { icon: params.icon }),
    ...(params.actions.length === 0 ? {} : { actions: params.actions }),
    ...(attached === undefined ? {} : { attachment: attached }),
    ...(params.isMarkdown ? { content_type: 'text/markdown' } : {}),
    ...(text.encoding === undefined ? {} : { encoding: text.encoding }),
  });
}

/** Wakes a phone, which then fetches the message; contains nothing of the message. */
export function pollRequest(
  params: PublishParams,
  { id, topic, nowMs }: MessageFacts,
): TopicMessage {
  return {
    id,
    time: Math.floor(nowMs / 1_000),
    event: 'poll_request',
    topic,
    message: 'New message',
    poll_id: params.pollId,
  };
}

/** Deletes an earlier message, or marks it as read. */
export function changeMessage(
  event: 'message_delete' | 'message_clear',
  sequenceId: string,
  { id, topic, nowMs, expiryMs }: MessageFacts,
): TopicMessage {
  const time = Math.floor(nowMs / 1_000);
  const expires = time + Math.floor(expiryMs / 1_000);
  return { id, sequence_id: sequenceId, time, expires, event, topic };
}

function attachedUrl(params: PublishParams): TopicAttachment | undefined {
  if (params.attach === '') return undefined;
  return { name: attachedName(params), url: params.attach };
}

/** Removes lone surrogates and NUL, which some readers cannot store. */
function clean(message: TopicMessage): TopicMessage {
  const { title = '', message: text = '', click = '', tags = [] } = message;
  const isClean = [title, text, click, ...tags].every(
    (each) => each.isWellFormed() && !each.includes('\0'),
  );
  if (isClean) return message;
  const cleaned = (each: string): string => each.toWellFormed().replaceAll('\0', '');
  return {
    ...message,
    ...(title === '' ? {} : { title: cleaned(title) }),
    message: cleaned(text),
    ...(click === '' ? {} : { click: cleaned(click) }),
    ...(tags.length === 0 ? {} : { tags: tags.map(cleaned) }),
  };
}

// Builds the published message from the parameters and the body. Pure.

import { attachedName, type MessageText } from './publish-body.ts';
import type { PublishParams } from './publish-params.ts';
import { filled, type TopicAttachment, type TopicMessage } from './topic-message.ts';

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
  const { sequenceId } = params;
  return filled({
    id,
    sequence_id: sequenceId === id ? undefined : sequenceId,
    time,
    expires: params.isCached ? time + Math.floor(expiryMs / 1_000) : undefined,
    event: 'message',
    topic,
    title: cleaned(text.title),
    message: cleaned(text.message === '' ? 'triggered' : text.message),
    priority: text.priority,
    tags: params.tags.map(cleaned),
    click: cleaned(params.click),
    icon: params.icon,
    actions: params.actions,
    attachment: attachment ?? attachedUrl(params),
    content_type: params.isMarkdown ? 'text/markdown' : undefined,
    encoding: text.encoding,
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
function cleaned(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}

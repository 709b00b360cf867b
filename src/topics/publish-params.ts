// The parameters of a publish, with ntfy's names and rules. Pure.

import { parseActions } from './parse-actions.ts';
import { parseDelay, type DelayLimits } from './parse-delay.ts';
import { ntfyError } from './ntfy-problems.ts';
import { isBoolean, isTrue, parsePriority, type RequestParams } from './request-params.ts';
import type { TopicAction } from './topic-message.ts';
import { isTopicName } from './topic-name.ts';

export interface PublishParams {
  /** Undefined: the id of the message. */
  readonly sequenceId: string | undefined;
  readonly isCached: boolean;
  readonly title: string;
  readonly message: string;
  readonly priority: number | undefined;
  /** The raw value, which may be a template. */
  readonly priorityText: string;
  readonly tags: readonly string[];
  readonly click: string;
  readonly icon: string;
  readonly filename: string;
  readonly attach: string;
  readonly email: string;
  /** Unix seconds; undefined: now. */
  readonly deliverAt: number | undefined;
  readonly actions: readonly TopicAction[];
  readonly isMarkdown: boolean;
  readonly template: string;
  readonly isUnifiedPush: boolean;
  readonly pollId: string;
}

export interface PublishRules extends DelayLimits {
  readonly hasEmail: boolean;
}

const names = {
  sequenceId: ['x-sequence-id', 'sequence-id', 'sid'],
  cache: ['x-cache', 'cache'],
  title: ['x-title', 'title', 't'],
  click: ['x-click', 'click'],
  icon: ['x-icon', 'icon'],
  filename: ['x-filename', 'filename', 'file', 'f'],
  attach: ['x-attach', 'attach', 'a'],
  email: ['x-email', 'x-e-mail', 'email', 'e-mail', 'mail', 'e'],
  call: ['x-call', 'call'],
  template: ['x-template', 'template', 'tpl'],
  message: ['x-message', 'message', 'm'],
  priority: ['x-priority', 'priority', 'prio', 'p'],
  tags: ['x-tags', 'tags', 'tag', 'ta'],
  delay: ['x-delay', 'delay', 'x-at', 'at', 'x-in', 'in'],
  actions: ['x-actions', 'actions', 'action'],
  contentType: ['content-type', 'content_type'],
  markdown: ['x-markdown', 'markdown', 'md'],
  unifiedPush: ['x-unifiedpush', 'unifiedpush', 'up'],
  contentEncoding: ['content-encoding'],
  pollId: ['x-poll-id', 'poll-id'],
} as const;

export const unifiedPushNames: readonly string[] = names.unifiedPush;

export function readPublishParams(
  params: RequestParams,
  {
    pathSequenceId,
    nowMs,
    rules,
  }: {
    readonly pathSequenceId: string | undefined;
    readonly nowMs: number;
    readonly rules: PublishRules;
  },
): PublishParams {
  const { text } = params;
  const sequenceId = pathSequenceId ?? (text(names.sequenceId) || undefined);
  if (sequenceId !== undefined && !isTopicName(sequenceId)) throw ntfyError('sequenceIdInvalid');
  const isCached = params.flag(names.cache, true);
  const attach = text(names.attach);
  if (attach !== '' && !isHttp(attach)) throw ntfyError('attachmentUrlInvalid');
  const icon = text(names.icon);
  if (icon !== '' && !isHttp(icon)) throw ntfyError('iconUrlInvalid');
  const email = readEmail(text(names.email), rules);
  if (text(names.call) !== '') throw ntfyError('callsDisabled');
  const template = text(names.template);
  const given = text(names.message);
  const message = isBoolean(template) ? given : given.replaceAll('\\n', '\n');
  const priorityText = text(names.priority);
  const priority = template === '' ? parsePriority(priorityText) : undefined;
  const tags = params.list(names.tags);
  const delay = text(names.delay);
  if (delay !== '') {
    if (!isCached) throw ntfyError('delayWithoutCache');
    if (email !== '') throw ntfyError('delayWithEmail');
  }
  const deliverAt = delay === '' ? undefined : parseDelay(delay, nowMs, rules);
  const actions = text(names.actions);
  const pollId = text(names.pollId);
  const isUnifiedPush =
    params.flag(names.unifiedPush, false) || text(names.contentEncoding) === 'aes128gcm';
  return {
    sequenceId,
    isCached: isCached && pollId === '',
    title: text(names.title),
    message,
    priority,
    priorityText,
    tags,
    click: text(names.click),
    icon,
    filename: text(names.filename),
    attach,
    email: pollId === '' ? email : '',
    deliverAt,
    actions: actions === '' ? [] : parseActions(actions),
    isMarkdown:
      params.flag(names.markdown, false) ||
      text(names.contentType).toLowerCase() === 'text/markdown',
    template,
    isUnifiedPush: isUnifiedPush && pollId === '',
    pollId,
  };
}

function isHttp(url: string): boolean {
  return /^https?:\/\//.test(url);
}

function readEmail(email: string, { hasEmail }: PublishRules): string {
  if (email === '') return '';
  const isAddress = /^[^\s,;]+$/.test(email) && email.slice(1, -1).includes('@');
  if (!isAddress && !isTrue(email)) throw ntfyError('emailInvalid');
  if (!hasEmail) throw ntfyError('emailDisabled');
  // `yes` means the address of the account, and accounts have no address here.
  if (isTrue(email)) throw ntfyError('anonymousEmail');
  return email;
}

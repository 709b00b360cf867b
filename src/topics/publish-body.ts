// How the body of a publish is used: as the text, as a file, or as the data of a template. Pure.

import { isUtf8 } from 'node:buffer';
import { ntfyError } from './ntfy-problems.ts';
import type { PublishParams } from './publish-params.ts';
import { createTemplateBudget } from './templates/budget.ts';
import { renderTemplate } from './templates/render-template.ts';
import { isBoolean, parsePriority } from './request-params.ts';
import { findTemplate, type NamedTemplate } from './templates/named-templates.ts';

/** The first bytes of a body, at most as many as a message may have. */
export interface PeekedBody {
  readonly head: Buffer;
  /** There may be more bytes. */
  readonly isCut: boolean;
}

export type BodyUse = 'discard' | 'unified-push' | 'text' | 'attachment' | 'template';

export function useOfBody(params: PublishParams, body: PeekedBody): BodyUse {
  if (params.pollId !== '') return 'discard';
  if (params.isUnifiedPush) return 'unified-push';
  if (params.attach !== '') return 'text';
  if (params.filename !== '') return 'attachment';
  if (params.template !== '') return 'template';
  return !body.isCut && isUtf8(body.head) ? 'text' : 'attachment';
}

export interface MessageText {
  readonly title: string;
  readonly message: string;
  readonly priority: number | undefined;
  readonly encoding?: string | undefined;
}

export function textOfBody(params: PublishParams, { head }: PeekedBody): MessageText {
  if (!isUtf8(head)) throw ntfyError('messageNotUtf8');
  const { title, priority } = params;
  const message = head.length === 0 ? params.message : head.toString('utf8').trim();
  const name = attachedName(params);
  const file = name === '' ? '' : `You received a file: ${name}`;
  return { title, priority, message: message === '' ? file : message };
}

export function unifiedPushText(params: PublishParams, { head }: PeekedBody): MessageText {
  const { title, priority } = params;
  if (isUtf8(head)) return { title, priority, message: head.toString('utf8') };
  return { title, priority, message: head.toString('base64'), encoding: 'base64' };
}

/** The given file name, or the last part of the attachment's URL. */
export function attachedName({ attach, filename }: PublishParams): string {
  if (filename !== '' || attach === '') return filename;
  const path = URL.canParse(attach) ? decoded(new URL(attach).pathname) : '';
  const name = path.split('/').findLast((part) => part !== '') ?? '';
  return name === '' || name === '.' ? 'attachment' : name;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

export function templatedText(
  params: PublishParams,
  body: string,
  {
    templates,
    messageBytesMax,
  }: {
    readonly templates: Readonly<Record<string, NamedTemplate>> | undefined;
    readonly messageBytesMax: number;
  },
): MessageText {
  const text = isBoolean(params.template) ? inline(params, body) : named(params, body, templates);
  const isLong = [text.title, text.message].some(
    (each) => Buffer.byteLength(each) > messageBytesMax,
  );
  if (isLong) throw ntfyError('templateTooLongAfter');
  return text;
}

function inline(params: PublishParams, body: string): MessageText {
  const budget = createTemplateBudget();
  const render = (template: string, name: string): string =>
    renderTemplate(template, body, `${name} query parameter`, budget);
  // ntfy's errors name the message 'priority', too.
  const message = render(params.message, 'priority');
  const title = render(params.title, 'title');
  const priority =
    params.priorityText === '' ? undefined : parsePriority(render(params.priorityText, 'priority'));
  return { title, message, priority };
}

function named(
  params: PublishParams,
  body: string,
  templates: Readonly<Record<string, NamedTemplate>> | undefined,
): MessageText {
  const found = findTemplate(params.template, templates);
  if (found === undefined) throw ntfyError('templateUnknown');
  const { title, message, priority } = found;
  const budget = createTemplateBudget();
  const render = (template: string, part: string): string =>
    renderTemplate(template, body, `${params.template} (${part})`, budget);
  return {
    message: message === undefined ? params.message : render(message, 'message'),
    title: title === undefined ? params.title : render(title, 'title'),
    priority: priority === undefined ? undefined : parsePriority(render(priority, 'priority')),
  };
}

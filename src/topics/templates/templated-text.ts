// The text of a message whose body is the data of a template. Pure.

import { ntfyError } from '../ntfy-problems.ts';
import type { MessageText } from '../publish-body.ts';
import type { PublishParams } from '../publish-params.ts';
import { isBoolean, parsePriority } from '../request-params.ts';
import { createTemplateBudget } from './budget.ts';
import { findTemplate, type NamedTemplate } from './named-templates.ts';
import { renderTemplate } from './render-template.ts';

export { templateLimits } from './render-template.ts';

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

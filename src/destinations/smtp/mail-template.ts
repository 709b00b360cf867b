// Texts with places for values: `{{customer.name}}`. No logic in them: what a mail says is decided in
// code, and a value that is missing is told before a mail with a hole in it goes out.

import { MillraceError } from '../../foundation/error.ts';

export interface MailTemplate {
  readonly subject: string;
  /** At least one of text and html. */
  readonly text?: string;
  /** Values are escaped. */
  readonly html?: string;
}

const place = /\{\{\s*([\w.-]+)\s*\}\}/g;

/**
 * Puts the values into their places. Throws `PAYLOAD_INVALID` with the name of one that is missing.
 *
 * @example
 * import { renderMail } from 'millrace/adapters/smtp';
 *
 * const template = { subject: 'Order {{order.id}}', html: '<p>Thank you, {{name}}!</p>' };
 * console.log(renderMail(template, { order: { id: 7 }, name: 'A & B' }).html); // <p>Thank you, A &amp; B!</p>
 */
export function renderMail(
  template: MailTemplate,
  values: Readonly<Record<string, unknown>>,
): MailTemplate {
  const fill = (text: string, escape: (value: string) => string): string =>
    text.replace(place, (_all, path: string) => escape(valueAt(values, path)));
  const { subject, text, html } = template;
  return {
    // A line break would end the header.
    subject: fill(subject, (value) => value.replace(/\s+/g, ' ')),
    ...(text === undefined ? {} : { text: fill(text, (value) => value) }),
    ...(html === undefined ? {} : { html: fill(html, escapeHtml) }),
  };
}

function valueAt(values: Readonly<Record<string, unknown>>, path: string): string {
  let current: unknown = values;
  for (const key of path.split('.')) {
    const isHolder = typeof current === 'object' && current !== null && Object.hasOwn(current, key);
    current = isHolder ? (current as Readonly<Record<string, unknown>>)[key] : undefined;
  }
  const isText = ['string', 'number', 'boolean', 'bigint'].includes(typeof current);
  if (isText) return String(current);
  throw new MillraceError('PAYLOAD_INVALID', `the mail's template needs a value for '${path}'`, {
    details: { path },
  });
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

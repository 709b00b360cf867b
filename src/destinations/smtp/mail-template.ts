// Mail templates with placeholders: `{{customer.name}}`. Templates have no logic, and a missing value is an error, so
// no incomplete mail is sent.

import { MillraceError } from '../../foundation/error.ts';

export interface MailTemplate {
  readonly subject: string;
  /** The plain text body; a mail needs `text`, `html` or both. */
  readonly text?: string | undefined;
  /** The HTML body, in which values are escaped. */
  readonly html?: string | undefined;
}

const placeholder = /\{\{\s*([\w.-]+)\s*\}\}/g;

/**
 * Replaces the placeholders with values. Throws `PAYLOAD_INVALID` with the name of a missing value.
 *
 * @example
 * import { renderMail } from 'millrace/destinations/smtp';
 *
 * const template = { subject: 'Order {{order.id}}', html: '<p>Thank you, {{name}}!</p>' };
 * console.log(renderMail(template, { order: { id: 7 }, name: 'A & B' }).html); // <p>Thank you, A &amp; B!</p>
 */
export function renderMail(
  template: MailTemplate,
  values: Readonly<Record<string, unknown>>,
): MailTemplate {
  const fill = (text: string, escape: (value: string) => string): string =>
    text.replace(placeholder, (_all, path: string) => escape(valueAt(values, path)));
  const { subject, text, html } = template;
  return {
    // A line break in the subject would start another mail header.
    subject: fill(subject, (value) => value.replace(/\s+/g, ' ')),
    ...(text === undefined ? {} : { text: fill(text, (value) => value) }),
    ...(html === undefined ? {} : { html: fill(html, escapeHtml) }),
  };
}

function valueAt(values: Readonly<Record<string, unknown>>, path: string): string {
  let current: unknown = values;
  for (const key of path.split('.')) {
    const hasKey = typeof current === 'object' && current !== null && Object.hasOwn(current, key);
    current = hasKey ? (current as Readonly<Record<string, unknown>>)[key] : undefined;
  }
  const isText = ['string', 'number', 'boolean', 'bigint'].includes(typeof current);
  if (isText) return String(current);
  throw new MillraceError('PAYLOAD_INVALID', `the mail template needs a value for '${path}'`, {
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

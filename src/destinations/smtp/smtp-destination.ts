// E-mail: one mail for one message, under a Message-ID that is derived from its key, so that mailboxes
// and people can tell a repeated one.

import { createHash } from 'node:crypto';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { untilAborted } from '../../delivery/until-aborted.ts';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import type { MailTemplate } from './mail-template.ts';
import { outcomeOfRejected, outcomeOfSmtpError } from './smtp-outcome.ts';

export interface Mail extends MailTemplate {
  /** Best one: of several, those that took it get it again when the others are tried again. */
  readonly to: string | readonly string[];
  readonly cc?: string | readonly string[];
  readonly bcc?: string | readonly string[];
  readonly replyTo?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The part of a nodemailer transporter that is used. */
export interface MailTransport {
  sendMail(mail: Readonly<Record<string, unknown>>): Promise<{
    readonly messageId?: string;
    readonly accepted?: readonly unknown[];
    readonly rejected?: readonly unknown[];
    readonly rejectedErrors?: readonly { readonly responseCode?: number | undefined }[] | undefined;
  }>;
  close(): void;
}

export interface SmtpOptions {
  /** `smtp://user:password@host:587`, `smtps://…`, or a nodemailer transporter of your own. */
  readonly transport: string | MailTransport;
  readonly from: string;
  /** What the mail says, and to whom; undefined: none is to be sent. */
  readonly compose: (message: DeliveryMessage) => Mail | undefined | Promise<Mail | undefined>;
  /** Of the Message-ID. Default: the domain of `from`. */
  readonly domain?: string;
}

export const smtpLimits = {
  connectTimeoutMs: 10_000,
  /** How long the server may be silent. */
  silenceMsMax: 30_000,
} as const;

/**
 * A destination that sends mails by SMTP, with the package `nodemailer`.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { renderMail, smtpDestination } from 'millrace/adapters/smtp';
 *
 * const receipt = { subject: 'Payment {{paymentId}}', text: 'We received {{amount}}.' };
 * await using email = await smtpDestination({
 *   transport: 'smtp://localhost:2525',
 *   from: 'Billing <billing@shop.example>',
 *   compose: ({ payload }) => ({ to: String(payload['email']), ...renderMail(receipt, payload) }),
 * });
 * const { deliver } = createDelivery({ destinations: { 'email:transactional': email } });
 */
export async function smtpDestination(
  options: SmtpOptions,
): Promise<Destination & AsyncDisposable> {
  const { transport: target, from, compose } = options;
  const domain = options.domain ?? domainOf(from);
  const transport = typeof target === 'string' ? await openTransport(target) : target;
  let isClosed = false;

  const send: Destination = async (message, { idempotencyKey, signal }) => {
    if (isClosed) throw new MillraceError('STORE_CLOSED', 'the destination was closed');
    const mail = await compose(message);
    if (mail === undefined) return { kind: 'sent', skipped: 'no mail is to be sent for it' };
    signal.throwIfAborted();
    const sending = transport.sendMail({
      ...mail,
      headers: { ...mail.headers, 'X-Idempotency-Key': encodeURIComponent(idempotencyKey) },
      from,
      messageId: messageIdOf(idempotencyKey, domain),
      // What a template or a payload holds must not make the server read its own files.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    // nodemailer ends what is left behind by its own time limits.
    return untilAborted(sending.then(outcomeOfSent, outcomeOfSmtpError), signal);
  };
  return Object.assign(send, {
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      if (typeof target === 'string') transport.close();
    },
  });
}

/** The same for every attempt; a hash, as keys may hold what an address may not. */
export function messageIdOf(idempotencyKey: string, domain: string): string {
  const digest = createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 40);
  return `<${digest}@${domain}>`;
}

async function openTransport(url: string): Promise<MailTransport> {
  if (!/^smtps?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new MillraceError('CONFIG_INVALID', 'the mail server is smtp://host:port or smtps://…');
  }
  const { createTransport } = await loadDriver('nodemailer', () => import('nodemailer'));
  return createTransport({
    url,
    connectionTimeout: smtpLimits.connectTimeoutMs,
    greetingTimeout: smtpLimits.connectTimeoutMs,
    socketTimeout: smtpLimits.silenceMsMax,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

function outcomeOfSent(info: Awaited<ReturnType<MailTransport['sendMail']>>): DeliveryOutcome {
  const { messageId, accepted = [], rejected = [], rejectedErrors = [] } = info;
  if (rejected.length > 0) {
    const statuses = rejected.map((_address, index) => rejectedErrors[index]?.responseCode);
    return outcomeOfRejected(statuses, accepted.length + rejected.length);
  }
  return { kind: 'sent', ...(messageId === undefined ? {} : { receipt: messageId }) };
}

function domainOf(from: string): string {
  const domain = /@([A-Za-z0-9.-]+)>?\s*$/.exec(from)?.[1];
  if (domain !== undefined) return domain;
  throw new MillraceError('CONFIG_INVALID', "'from' must end in an address: Name <user@domain>");
}

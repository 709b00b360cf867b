// Delivers messages by SMTP. The Message-ID is derived from the idempotency key, so a duplicate mail is recognisable.

import { createHash } from 'node:crypto';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { Destination } from '../../delivery/destination.ts';
import { untilAborted } from '../../delivery/until-aborted.ts';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import type { MailTemplate } from './mail-template.ts';

export interface Mail extends MailTemplate {
  /** Preferably one address: a retry for a rejected recipient sends the mail to all of them again. */
  readonly to: string | readonly string[];
  readonly cc?: string | readonly string[] | undefined;
  readonly bcc?: string | readonly string[] | undefined;
  readonly replyTo?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The required part of a nodemailer transporter. */
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
  /** `smtp://user:password@host:587`, `smtps://…`, or your nodemailer transporter. */
  readonly transport: string | MailTransport;
  readonly from: string;
  /** Returns the mail; undefined: send none. */
  readonly compose: (message: DeliveryMessage) => Mail | undefined | Promise<Mail | undefined>;
  /** The domain of the Message-ID. Default: the domain of `from`. */
  readonly domain?: string | undefined;
}

export const smtpLimits = {
  connectTimeoutMs: 10_000,
  /** Socket inactivity timeout. */
  silenceMsMax: 30_000,
} as const;

/**
 * A destination that sends mails by SMTP with the package `nodemailer`.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { renderMail, smtpDestination } from 'millrace/destinations/smtp';
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
    if (mail === undefined) return { kind: 'sent', skipped: 'compose returned no mail' };
    signal.throwIfAborted();
    const sending = transport.sendMail({
      ...mail,
      headers: { ...mail.headers, 'X-Idempotency-Key': encodeURIComponent(idempotencyKey) },
      from,
      messageId: messageIdOf(idempotencyKey, domain),
      // A template or payload must not make the sender read local files.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    // After an abort, the timeouts of nodemailer stop the attempt.
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

/** Returns the same id for every attempt. The key is hashed, because it may contain characters invalid in an address. */
export function messageIdOf(idempotencyKey: string, domain: string): string {
  const digest = createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 40);
  return `<${digest}@${domain}>`;
}

async function openTransport(url: string): Promise<MailTransport> {
  if (!/^smtps?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new MillraceError(
      'CONFIG_INVALID',
      'the mail server must be a URL: smtp://host:port or smtps://host:port',
    );
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

/** The error fields of nodemailer. */
interface SmtpFailure {
  readonly code?: unknown;
  readonly responseCode?: unknown;
  readonly command?: unknown;
}

/** Codes of errors that the mail itself causes. */
const mailErrors: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE', 'EMAXRECIPIENTS']);
/** Codes of connection errors, at an unknown stage of the conversation. */
const connectionErrors: ReadonlySet<unknown> = new Set(['ECONNECTION', 'ETIMEDOUT', 'ESOCKET']);

/**
 * Retries a 4yz reply; a 5yz reply about the mail, its sender or its recipients is permanent. Errors of the
 * connection or the login are retried, because the mail did not cause them.
 */
export function outcomeOfSmtpError(error: unknown): DeliveryOutcome {
  const { code, responseCode, command } = (error ?? {}) as SmtpFailure;
  const text = withoutAddresses(errorText(error));
  const status = typeof responseCode === 'number' ? responseCode : undefined;
  const answer = status === undefined ? {} : { answer: { status, body: text } };
  if (mailErrors.has(code)) {
    const isFinal = status === undefined || status >= 500;
    return { kind: isFinal ? 'dead' : 'retry', error: text, ...answer };
  }
  // If the connection was refused or the server replied, the server did not accept the mail: not ambiguous.
  const isAmbiguous =
    connectionErrors.has(code) && status === undefined && !/ECONNREFUSED|ENOTFOUND/.test(text);
  const where = typeof command === 'string' && command !== 'CONN' ? ` (${command})` : '';
  const ambiguous = isAmbiguous ? { ambiguous: true } : {};
  return { kind: 'retry', error: `${text}${where}`, ...answer, ...ambiguous };
}

/** The outcome if some recipients were rejected; the accepted ones have received the mail. */
export function outcomeOfRejected(
  statuses: readonly (number | undefined)[],
  recipients: number,
): DeliveryOutcome {
  const codes = statuses.map((status) => status ?? '?').join(', ');
  const error = `${statuses.length} of ${recipients} recipients were rejected: ${codes}`;
  // A retry sends a duplicate to the accepted recipients, but under the same Message-ID.
  const isTemporary = statuses.some((status) => status !== undefined && status < 500);
  return { kind: isTemporary ? 'retry' : 'dead', error };
}

/** Servers repeat addresses in their replies, and the ledger must not store personal data. */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s<>@"]+@[^\s<>@",;:]+/g, '…@…');
}

// What an SMTP server's refusal means for the mail. Pure.

import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';

/** What nodemailer tells of a failure. */
interface SmtpFailure {
  readonly code?: unknown;
  readonly responseCode?: unknown;
  readonly command?: unknown;
}

/** Wrong with the mail itself, found before or while it was handed over. */
const ofTheMail: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE', 'EMAXRECIPIENTS']);
/** The connection broke; when, nobody knows. */
const ofTheConnection: ReadonlySet<unknown> = new Set(['ECONNECTION', 'ETIMEDOUT', 'ESOCKET']);

/**
 * 4yz comes again, 5yz about the mail, its sender or its recipients is dead. What concerns the
 * connection or the login comes again: no mail is at fault for a wrong password.
 */
export function outcomeOfSmtpError(error: unknown): DeliveryOutcome {
  const { code, responseCode, command } = (error ?? {}) as SmtpFailure;
  const text = withoutAddresses(errorText(error));
  const status = typeof responseCode === 'number' ? responseCode : undefined;
  if (ofTheMail.has(code)) {
    const isFinal = status === undefined || status >= 500;
    return { kind: isFinal ? 'dead' : 'retry', error: text };
  }
  // Refused before it was connected, or answered: then nothing was taken.
  const isAmbiguous =
    ofTheConnection.has(code) && status === undefined && !/ECONNREFUSED|ENOTFOUND/.test(text);
  const where = typeof command === 'string' && command !== 'CONN' ? ` (${command})` : '';
  return { kind: 'retry', error: `${text}${where}`, ...(isAmbiguous ? { ambiguous: true } : {}) };
}

/** Some recipients were taken and others not: those that were have the mail already. */
export function outcomeOfRejected(
  statuses: readonly (number | undefined)[],
  recipients: number,
): DeliveryOutcome {
  const codes = statuses.map((status) => status ?? '?').join(', ');
  const error = `${statuses.length} of ${recipients} recipients were refused: ${codes}`;
  // Again for all of them, under the same Message-ID, rather than never for some.
  const isTemporary = statuses.some((status) => status !== undefined && status < 500);
  return { kind: isTemporary ? 'retry' : 'dead', error };
}

/** Servers repeat addresses in what they say, and the ledger keeps no personal data. */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s<>@"]+@[^\s<>@",;:]+/g, '…@…');
}

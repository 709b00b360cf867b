// The message API of Twilio, and of providers compatible with it: one form-encoded POST.

import { errorText, type DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { outcomeOfResponse } from '../../delivery/http-outcome.ts';
import { createHttpClient, outcomeOfFailure } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { SmsProvider } from './destination.ts';

export interface TwilioOptions {
  readonly accountSid: string;
  readonly authToken: string;
  /** A phone number, or the sid of a messaging service (`MG…`). */
  readonly from: string;
  /** Default: `https://api.twilio.com`. */
  readonly apiUrl?: string | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * A provider for `smsDestination`. Twilio does not detect duplicates: a retry after a lost response sends the SMS
 * twice. The idempotency key is sent for compatible providers that do.
 *
 * @example
 * import { twilioProvider } from 'millrace/destinations/sms';
 *
 * await using provider = twilioProvider({ accountSid: 'AC…', authToken: '…', from: 'MG…' });
 */
export function twilioProvider(options: TwilioOptions): SmsProvider {
  const { accountSid, authToken, from, clock = systemClock } = options;
  const { apiUrl = 'https://api.twilio.com' } = options;
  if (!URL.canParse(apiUrl))
    throw new MillraceError('CONFIG_INVALID', `invalid apiUrl '${apiUrl}'`);
  const path = `/2010-04-01/Accounts/${encodeURIComponent(accountSid)}/Messages.json`;
  const url = new URL(path, apiUrl);
  const client = createHttpClient();
  const login = Buffer.from(`${accountSid}:${authToken}`).toString('base64');
  const sender = from.startsWith('MG') ? { MessagingServiceSid: from } : { From: from };

  return {
    async send({ to, body }, { idempotencyKey, signal }) {
      try {
        const posted = await client.post({
          url,
          signal,
          body: new URLSearchParams({ To: to, Body: body, ...sender }).toString(),
          headers: {
            authorization: `Basic ${login}`,
            'content-type': 'application/x-www-form-urlencoded',
            'idempotency-key': encodeURIComponent(idempotencyKey),
          },
          answerBytesMax: 64 * 1_024,
        });
        const { status, headers } = posted;
        const response = {
          status,
          body: '',
          retryAfter: headers['retry-after'],
          nowMs: clock.now(),
        };
        return outcomeOf(outcomeOfResponse(response), parsed(posted.body), status);
      } catch (error) {
        return outcomeOfFailure(error);
      }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

interface TwilioResponse {
  readonly sid?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

/** The response repeats the number and text of the SMS, so the outcome contains only parts of it. */
function outcomeOf(
  outcome: DeliveryOutcome,
  { sid, code, message }: TwilioResponse,
  status: number,
): DeliveryOutcome {
  if (outcome.kind === 'sent') {
    return { kind: 'sent', ...(typeof sid === 'string' ? { receipt: sid } : {}) };
  }
  const body = typeof message === 'string' ? withoutNumbers(errorText(message)) : '';
  const reason = body === '' ? '' : `: ${body}`;
  const number = typeof code === 'number' ? ` (${code})` : '';
  const failed = { error: `HTTP ${status}${number}${reason}`, answer: { status, body } };
  // The message did not cause a wrong login; after a 5xx response the SMS may have been sent.
  if (status === 401 || status === 403) return { kind: 'retry', ...failed };
  if (status >= 500) return { ...outcome, kind: 'retry', ...failed, ambiguous: true };
  return { ...outcome, ...failed };
}

function withoutNumbers(text: string): string {
  return text.replace(/\+?\d[\d ()-]{6,}\d/g, '…');
}

function parsed(text: string): TwilioResponse {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

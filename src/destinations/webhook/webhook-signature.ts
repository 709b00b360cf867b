// Standard Webhooks signatures over id.timestamp.body: `v1,<base64 of HMAC-SHA256>` or `v1a,<base64 of ed25519>`, one
// for each live secret, so that a secret can be replaced without a moment in which receivers refuse.

import { MillraceError } from '../../foundation/error.ts';
import { signingKey, webhookKey, webhookKeyLimits } from './webhook-key.ts';

export interface SignedContent {
  readonly id: string;
  readonly timestampMs: number;
  readonly body: string | Uint8Array;
}

export interface VerifyWebhook {
  /** As it came over the wire, before any parsing. */
  readonly body: string | Uint8Array;
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** All that are live, `whsec_…` or `whpk_…`: during a rotation the old one and the new one. */
  readonly secrets: readonly string[];
  /** How far the time may be from now, to either side. Default: 5 minutes. */
  readonly toleranceMs?: number;
  readonly nowMs?: number;
}

export interface VerifiedWebhook {
  /** Dedupe by it: the same for every attempt. */
  readonly id: string;
  readonly timestampMs: number;
}

export const signatureLimits = {
  toleranceMs: 5 * 60_000,
  /** More in one header are not looked at. */
  signaturesMax: 16,
  ...webhookKeyLimits,
} as const;

/**
 * The value of the header `webhook-signature`: one signature for each secret, the first one first.
 *
 * @example
 * import { signWebhook } from 'millrace/adapters/webhook';
 *
 * const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];
 * console.log(signWebhook({ id: 'msg_1', timestampMs: Date.now(), body: '{}' }, secrets)); // v1,…
 */
export function signWebhook(content: SignedContent, secrets: readonly string[]): string {
  const signed = signedBytes(content);
  return secrets
    .map((secret) => {
      const { scheme, sign } = signingKey(secret);
      return `${scheme},${sign(signed).toString('base64')}`;
    })
    .join(' ');
}

/**
 * For receivers: tells whether a webhook comes from who has the secret, and is no old one played
 * again. Throws `SIGNATURE_INVALID`. Beside this, dedupe by the id (`postgresInbox`, `sqliteInbox`).
 *
 * @example
 * import { createServer } from 'node:http';
 * import { buffer } from 'node:stream/consumers';
 * import { hasCode } from 'millrace/foundation';
 * import { verifyWebhook } from 'millrace/adapters/webhook';
 *
 * const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'];
 * createServer(async (request, response) => {
 *   const body = await buffer(request);
 *   try {
 *     const { id } = verifyWebhook({ body, headers: request.headers, secrets });
 *     console.log(id, JSON.parse(body.toString()));
 *     response.writeHead(204).end();
 *   } catch (error) {
 *     response.writeHead(hasCode(error, 'SIGNATURE_INVALID') ? 401 : 500).end();
 *   }
 * });
 */
export function verifyWebhook(options: VerifyWebhook): VerifiedWebhook {
  const { body, secrets, toleranceMs = signatureLimits.toleranceMs, nowMs = Date.now() } = options;
  const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => headerOf(options.headers, name),
  );
  if (id === undefined || time === undefined || signatures === undefined) {
    throw invalid('a header is missing');
  }
  // A dot in it would let parts of the id, the time and the body change places under one signature.
  if (id === '' || id.includes('.')) throw invalid('the id is malformed');
  if (!/^\d{1,12}$/.test(time)) throw invalid('the timestamp is malformed');
  const timestampMs = Number(time) * 1_000;
  const content = signedBytes({ id, timestampMs, body });
  const keys = secrets.map(webhookKey);
  let isSigned = false;
  // All are compared, so that the time tells nothing about which one fits.
  for (const each of signatures.split(' ').slice(0, signatureLimits.signaturesMax)) {
    const [scheme, text = ''] = each.split(',', 2);
    const given = Buffer.from(text, 'base64');
    for (const key of keys) {
      if (key.scheme === scheme && key.verify(content, given)) isSigned = true;
    }
  }
  if (!isSigned) throw invalid('no signature fits');
  if (Math.abs(nowMs - timestampMs) > toleranceMs)
    throw invalid('the timestamp is too far from now');
  return { id, timestampMs };
}

function signedBytes({ id, timestampMs, body }: SignedContent): Buffer {
  const head = `${id}.${Math.floor(timestampMs / 1_000)}.`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

function headerOf(headers: VerifyWebhook['headers'], name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  return typeof found === 'string' ? found : found?.[0];
}

function invalid(reason: string): MillraceError {
  return new MillraceError('SIGNATURE_INVALID', 'the webhook is not genuine', {
    details: { reason },
  });
}

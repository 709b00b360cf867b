// Standard Webhooks signatures: `v1,<base64 of HMAC-SHA256 over id.timestamp.body>`, one for each live
// secret, so that a secret can be replaced without a moment in which receivers refuse.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';

export interface SignedContent {
  readonly id: string;
  readonly timestampMs: number;
  readonly body: string | Uint8Array;
}

export interface VerifyWebhook {
  /** As it came over the wire, before any parsing. */
  readonly body: string | Uint8Array;
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** All that are live: during a rotation the old one and the new one. */
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
  secretBytesMin: 16,
  secretBytesMax: 64,
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
  return secrets.map((secret) => `v1,${signatureOf(content, secret)}`).join(' ');
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
  const expected = secrets.map((secret) =>
    Buffer.from(signatureOf({ id, timestampMs, body }, secret)),
  );
  let isSigned = false;
  // All are compared, so that the time tells nothing about which one fits.
  for (const each of signatures.split(' ').slice(0, signatureLimits.signaturesMax)) {
    if (!each.startsWith('v1,')) continue;
    const given = Buffer.from(each.slice('v1,'.length));
    for (const wanted of expected) {
      if (given.length === wanted.length && timingSafeEqual(given, wanted)) isSigned = true;
    }
  }
  if (!isSigned) throw invalid('no signature fits');
  if (Math.abs(nowMs - timestampMs) > toleranceMs)
    throw invalid('the timestamp is too far from now');
  return { id, timestampMs };
}

/** Throws `CONFIG_INVALID` without showing it. */
export function secretBytes(secret: string): Buffer {
  const text = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret;
  const bytes = Buffer.from(text, 'base64');
  const { secretBytesMin, secretBytesMax } = signatureLimits;
  const isBase64 = bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (isBase64 && bytes.length >= secretBytesMin && bytes.length <= secretBytesMax) return bytes;
  throw new MillraceError(
    'CONFIG_INVALID',
    `a webhook secret is 'whsec_' and the base64 of ${secretBytesMin} to ${secretBytesMax} random bytes`,
  );
}

function signatureOf({ id, timestampMs, body }: SignedContent, secret: string): string {
  return createHmac('sha256', secretBytes(secret))
    .update(`${id}.${Math.floor(timestampMs / 1_000)}.`)
    .update(body)
    .digest('base64');
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

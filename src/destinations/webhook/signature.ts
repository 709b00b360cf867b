// Standard Webhooks signatures over id.timestamp.body: `v1,<base64 of HMAC-SHA256>` or `v1a,<base64 of ed25519>`, one
// per live secret, so receivers accept webhooks throughout a rotation.

import { MillraceError } from '../../foundation/error.ts';
import { signingKey, webhookKey, webhookKeyLimits } from './key.ts';

export interface SignedContent {
  readonly id: string;
  readonly timestampMs: number;
  readonly body: string | Uint8Array;
}

export interface VerifyWebhook {
  /** The raw request body, before any parsing. */
  readonly body: string | Uint8Array;
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** All live secrets, `whsec_…` or `whpk_…`: during a rotation both the old and the new one. */
  readonly secrets: readonly string[];
  /** The accepted difference between the timestamp and now, in both directions. Default: 5 minutes. */
  readonly toleranceMs?: number | undefined;
  readonly nowMs?: number | undefined;
}

export interface VerifiedWebhook {
  /** The id of the message, which is the same for every attempt: use it to detect duplicates. */
  readonly id: string;
  readonly timestampMs: number;
}

export const signatureLimits = {
  toleranceMs: 5 * 60_000,
  /** Further signatures in a header are ignored. */
  signaturesMax: 16,
  ...webhookKeyLimits,
} as const;

/**
 * The value of the header `webhook-signature`: one signature per secret, in their order.
 *
 * @example
 * import { signWebhook } from 'millrace/destinations/webhook';
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
 * For receivers: verifies that the webhook was signed with one of the secrets and is recent. Throws
 * `SIGNATURE_INVALID`. In addition, detect duplicates by the id (`postgresInbox`, `sqliteInbox`).
 *
 * @example
 * import { createServer } from 'node:http';
 * import { buffer } from 'node:stream/consumers';
 * import { hasCode } from 'millrace/foundation';
 * import { verifyWebhook } from 'millrace/destinations/webhook';
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
  // A dot would make the boundary between id, timestamp and body ambiguous under one signature.
  if (id === '' || id.includes('.')) throw invalid('the id is malformed');
  if (!/^\d{1,12}$/.test(time)) throw invalid('the timestamp is malformed');
  const timestampMs = Number(time) * 1_000;
  const content = signedBytes({ id, timestampMs, body });
  const keys = secrets.map(webhookKey);
  let isSigned = false;
  // Compares all signatures, so the duration does not reveal which one matched.
  for (const each of signatures.split(' ').slice(0, signatureLimits.signaturesMax)) {
    const [scheme, text = ''] = each.split(',', 2);
    const given = Buffer.from(text, 'base64');
    for (const key of keys) {
      if (key.scheme === scheme && key.verify(content, given)) isSigned = true;
    }
  }
  if (!isSigned) throw invalid('no signature matches');
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
  return new MillraceError('SIGNATURE_INVALID', `invalid webhook signature: ${reason}`, {
    details: { reason },
  });
}

// Parses the secrets of Standard Webhooks: `whsec_` (shared, HMAC), and the ed25519 pair `whsk_` (sender) and `whpk_`
// (receiver).

import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  timingSafeEqual,
  verify,
  type KeyObject,
} from 'node:crypto';
import { MillraceError } from '../../foundation/error.ts';

export const webhookKeyLimits = { secretBytesMin: 16, secretBytesMax: 64 } as const;

export interface WebhookKeyPair {
  /** `whsk_…`, for the sender alone. */
  readonly secretKey: string;
  /** `whpk_…`, for receivers. */
  readonly publicKey: string;
}

type Sign = (content: Buffer) => Buffer;

/** A parsed secret; a public key cannot sign. */
interface WebhookKey {
  readonly scheme: 'v1' | 'v1a';
  readonly sign: Sign | undefined;
  readonly verify: (content: Buffer, signature: Buffer) => boolean;
}

/** The DER headers of ed25519 keys. */
const derPrefixes = {
  privateKey: Buffer.from('302e020100300506032b657004220420', 'hex'),
  publicKey: Buffer.from('302a300506032b6570032100', 'hex'),
} as const;

/**
 * Creates a key pair for webhooks that are signed with ed25519.
 *
 * @example
 * import { createWebhookKeyPair } from 'millrace/destinations/webhook';
 *
 * const { secretKey, publicKey } = createWebhookKeyPair();
 * const endpoint = { id: 'acme', url: 'https://acme.example/hook', secrets: [secretKey] };
 * console.log(`verify with ${publicKey}`, endpoint.id);
 */
export function createWebhookKeyPair(): WebhookKeyPair {
  const { privateKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32);
  const publicBytes = publicBytesOf(privateKey);
  return {
    // Most libraries encode a secret key as the seed followed by the public key.
    secretKey: `whsk_${Buffer.concat([seed, publicBytes]).toString('base64')}`,
    publicKey: `whpk_${publicBytes.toString('base64')}`,
  };
}

/** Throws `CONFIG_INVALID`; the error does not show the secret. */
export function webhookKey(secret: string): WebhookKey {
  if (secret.startsWith('whsk_')) return pairKey(secretKeyOf(secret));
  if (secret.startsWith('whpk_')) return pairKey(publicKeyOf(secret));
  const shared = sharedBytes(secret);
  const hmac = (content: Buffer): Buffer => createHmac('sha256', shared).update(content).digest();
  return {
    scheme: 'v1',
    sign: hmac,
    verify(content, signature) {
      const wanted = hmac(content);
      return signature.length === wanted.length && timingSafeEqual(signature, wanted);
    },
  };
}

/** Like `webhookKey`, but rejects keys that cannot sign. */
export function signingKey(secret: string): WebhookKey & { readonly sign: Sign } {
  const key = webhookKey(secret);
  const { sign: signWith } = key;
  if (signWith !== undefined) return { ...key, sign: signWith };
  throw new MillraceError(
    'CONFIG_INVALID',
    'a public key (whpk_) cannot sign webhooks; use its secret key (whsk_)',
  );
}

function pairKey(key: KeyObject): WebhookKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return {
    scheme: 'v1a',
    sign: key.type === 'private' ? (content) => sign(null, content, key) : undefined,
    verify: (content, signature) => verify(null, content, publicKey, signature),
  };
}

function secretKeyOf(secret: string): KeyObject {
  const bytes = bytesOf(secret.slice('whsk_'.length));
  if (bytes?.length !== 32 && bytes?.length !== 64) throw invalid();
  const der = Buffer.concat([derPrefixes.privateKey, bytes.subarray(0, 32)]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  // A mismatch between the seed and the appended public key means a corrupt key.
  if (bytes.length === 64 && !publicBytesOf(key).equals(bytes.subarray(32))) throw invalid();
  return key;
}

function publicKeyOf(secret: string): KeyObject {
  const bytes = bytesOf(secret.slice('whpk_'.length));
  if (bytes?.length !== 32) throw invalid();
  const der = Buffer.concat([derPrefixes.publicKey, bytes]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

function publicBytesOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
}

function sharedBytes(secret: string): Buffer {
  const bytes = bytesOf(secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret);
  const { secretBytesMin, secretBytesMax } = webhookKeyLimits;
  if (bytes === undefined || bytes.length < secretBytesMin || bytes.length > secretBytesMax) {
    throw invalid();
  }
  return bytes;
}

function bytesOf(text: string): Buffer | undefined {
  // The longest secret in base64.
  if (text.length > 4 * Math.ceil(webhookKeyLimits.secretBytesMax / 3)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  return isBase64 ? bytes : undefined;
}

function invalid(): MillraceError {
  const { secretBytesMin, secretBytesMax } = webhookKeyLimits;
  return new MillraceError(
    'CONFIG_INVALID',
    `a webhook secret is 'whsec_' and the base64 of ${secretBytesMin} to ${secretBytesMax} random bytes, ` +
      "or of an ed25519 key after 'whsk_' (to sign) or 'whpk_' (to verify)",
  );
}

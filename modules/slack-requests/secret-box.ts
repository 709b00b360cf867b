// Encrypts tokens with AES-256-GCM. The tenant and the owner are authenticated, so a ciphertext copied elsewhere does not
// decrypt. The first key encrypts and all keys decrypt, which allows key rotation.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { MillraceError } from 'millrace/foundation';

export interface SecretKey {
  /** Part of every ciphertext: letters, digits, `_`, `-`. */
  readonly id: string;
  /** 32 bytes, in base64. */
  readonly key: string;
}

/** The owner of a secret. */
export interface SecretOwner {
  readonly tenant: string;
  /** Kind of the configuration: `workspace` or `app`. */
  readonly kind: string;
  readonly code: string;
}

export interface SecretBox {
  seal(secret: string, owner: SecretOwner): string;
  /** Throws `CONFIG_INVALID` if no key fits. */
  open(sealed: string, owner: SecretOwner): string;
  /** Encrypted with the first key. */
  isCurrent(sealed: string): boolean;
}

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

export function createSecretBox(keys: readonly SecretKey[]): SecretBox {
  const [current, ...older] = keys.map(({ id, key }) => ({ id, bytes: keyBytes(id, key) }));
  if (current === undefined) throw invalid('At least one secret key is required.');
  const byId = new Map([current, ...older].map((each) => [each.id, each.bytes]));
  if (byId.size < keys.length) throw invalid('Two secret keys have the same id.');

  return {
    seal(secret, owner) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv(algorithm, current.bytes, iv).setAAD(bound(owner));
      const text = Buffer.concat([
        cipher.update(secret, 'utf8'),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      return `sealed.v1.${current.id}.${iv.toString('base64url')}.${text.toString('base64url')}`;
    },
    open(sealed, owner) {
      const { id, iv, text } = parts(sealed);
      const bytes = byId.get(id);
      if (bytes === undefined) throw invalid(`Unknown secret key "${id}".`);
      try {
        const decipher = createDecipheriv(algorithm, bytes, iv, { authTagLength: tagBytes })
          .setAAD(bound(owner))
          .setAuthTag(text.subarray(-tagBytes));
        const opened = [decipher.update(text.subarray(0, -tagBytes)), decipher.final()];
        return Buffer.concat(opened).toString('utf8');
      } catch (cause) {
        throw invalid(`Cannot decrypt a secret with the key "${id}".`, cause);
      }
    },
    isCurrent: (sealed) => parts(sealed).id === current.id,
  };
}

/** `k2:<base64>,k1:<base64>`: the first key encrypts. */
export function parseSecretKeys(text: string): readonly SecretKey[] {
  return text.split(',').map((part) => {
    const [, id, key] = /^([\w-]{1,32}):([A-Za-z0-9+/_=-]+)$/.exec(part.trim()) ?? [];
    if (id === undefined || key === undefined)
      throw invalid('Invalid secret keys. Use <id>:<base64>,…');
    return { id, key };
  });
}

function keyBytes(id: string, key: string): Buffer {
  const bytes = Buffer.from(key, 'base64');
  if (!/^[\w-]{1,32}$/.test(id))
    throw invalid('A secret key id consists of letters, digits, _ and -.');
  if (bytes.length !== 32)
    throw invalid(
      `The secret key "${id}" must have 32 bytes. Create one with: openssl rand -base64 32`,
    );
  return bytes;
}

function bound({ tenant, kind, code }: SecretOwner): Buffer {
  return Buffer.from(JSON.stringify([tenant, kind, code]));
}

function parts(sealed: string): {
  readonly id: string;
  readonly iv: Buffer;
  readonly text: Buffer;
} {
  const [, id = '', iv = '', text = ''] =
    /^sealed\.v1\.([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(sealed) ?? [];
  const found = { id, iv: Buffer.from(iv, 'base64url'), text: Buffer.from(text, 'base64url') };
  if (found.iv.length === ivBytes && found.text.length >= tagBytes) return found;
  throw invalid('Not an encrypted secret.');
}

function invalid(message: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { cause, details: { field: 'secretKeys' } });
}

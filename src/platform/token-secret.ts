// The secret of a token: shown once, kept as a hash. It carries the token's id, so that it is found
// by that and compared with one hash only. 256 random bits cannot be guessed: no slow hash is needed.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const shape = /^mr_([0-9a-f]{32})_[A-Za-z0-9_-]{43}$/;

export function createTokenSecret(tokenId: string): string {
  return `mr_${tokenId.replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`;
}

/** Undefined: no secret of ours. */
export function tokenIdOf(secret: string): string | undefined {
  const hex = shape.exec(secret)?.[1];
  return hex?.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** SHA-256, hex. */
export function hashTokenSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** In a time that does not tell how much of it fits. */
export function fitsTokenHash(secret: string, hash: string): boolean {
  const given = Buffer.from(hashTokenSecret(secret), 'hex');
  const kept = Buffer.from(hash, 'hex');
  return given.length === kept.length && timingSafeEqual(given, kept);
}

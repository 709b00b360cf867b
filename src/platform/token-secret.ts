// The secret of a token: shown once, kept as a hash. It carries the token's id, so that it is found
// by that and compared with one hash only. 256 random bits cannot be guessed: no slow hash is needed.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

const shape =
  /^mr_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export function createTokenSecret(tokenId: string): string {
  return `mr_${tokenId.replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`;
}

/** Undefined: no secret of ours. */
export function tokenIdOf(secret: string): string | undefined {
  const found = shape.exec(secret);
  if (found === null) return undefined;
  const [, time, low, version, variant, node] = found;
  return `${time}-${low}-${version}-${variant}-${node}`;
}

/** SHA-256, hex. */
export function hashTokenSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** In a time that does not tell how much of it fits. */
export function fitsTokenHash(secret: string, keptHash: string): boolean {
  const given = hash('sha256', secret, 'buffer');
  const kept = Buffer.from(keptHash, 'hex');
  return given.length === kept.length && timingSafeEqual(given, kept);
}

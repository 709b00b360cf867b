// Passwords of topic users, stored as `scrypt$<salt>$<hash>`.

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify(scrypt) as (
  password: string,
  salt: Buffer,
  length: number,
) => Promise<Buffer>;
const hashBytes = 32;

/**
 * The hash that the configuration contains instead of a password.
 *
 * @example
 * import { hashNotifyPassword } from 'millrace/topics';
 *
 * console.log(await hashNotifyPassword('correct horse')); // scrypt$…$…
 */
export async function hashNotifyPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, hashBytes);
  return `scrypt$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

export function isPasswordHash(text: string): boolean {
  return /^scrypt\$[\w-]{8,}\$[\w-]{43}$/.test(text);
}

export async function matchesPasswordHash(password: string, stored: string): Promise<boolean> {
  const [, salt = '', hash = ''] = stored.split('$');
  const expected = Buffer.from(hash, 'base64url');
  const derived = await derive(password, Buffer.from(salt, 'base64url'), hashBytes);
  return expected.length === derived.length && timingSafeEqual(expected, derived);
}

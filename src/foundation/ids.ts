// Ids of events and commands: time-ordered for new ones, derived from a key where duplicates must match.

import { createHash, randomFillSync } from 'node:crypto';
import { systemClock, type Clock } from './clock.ts';

export interface IdSource {
  /** A new UUIDv7, which sorts after all earlier ids of this source. */
  next(): string;
}

export interface IdSourceOptions {
  readonly clock?: Clock | undefined;
  /** Fills the buffer with random bytes; a seeded one makes runs repeatable. */
  readonly fill?: ((bytes: Uint8Array) => void) | undefined;
}

const counterMax = 0xfff;
const poolBytes = 8 * 512;

/**
 * A source of UUIDv7 ids (RFC 9562) that never goes backwards: a 12-bit counter orders the ids of
 * one millisecond, and a clock that steps back keeps counting from the last time seen.
 *
 * @example
 * import { createIds } from 'millrace/foundation';
 *
 * const ids = createIds();
 * console.log(ids.next() < ids.next()); // true
 */
export function createIds(options: IdSourceOptions = {}): IdSource {
  const clock = options.clock ?? systemClock;
  const fill = options.fill ?? ((bytes: Uint8Array): void => void randomFillSync(bytes));
  const pool = Buffer.alloc(poolBytes);
  let offset = poolBytes;
  let lastMs = -1;
  let counter = 0;
  // The time changes at most a thousand times a second, so its string is cached.
  let timePart = '';

  return {
    next() {
      if (offset === poolBytes) {
        fill(pool);
        offset = 0;
      }
      const now = clock.now();
      if (now > lastMs) {
        lastMs = now;
        timePart = timeHex(lastMs);
        // Starting in the lower half leaves room to count within the millisecond.
        counter = pool.readUInt16BE(offset) & 0x7ff;
      } else if (counter === counterMax) {
        lastMs += 1;
        timePart = timeHex(lastMs);
        counter = 0;
      } else {
        counter += 1;
      }
      const at = offset;
      offset += 8;
      pool[at] = (pool.readUInt8(at) & 0x3f) | 0x80;
      const random = `${hex(pool, at, 2)}-${hex(pool, at + 2, 6)}`;
      return `${timePart}7${counter.toString(16).padStart(3, '0')}-${random}`;
    },
  };
}

/** The namespace of all derived ids: they never equal the derived ids of another program. */
const namespace = Buffer.from('6d696c6c726163655f6e616d65737061', 'hex');

/**
 * The UUIDv5 of an idempotency key. The same key has the same id on every machine, so a duplicate command appends the
 * same event ids, and the store recognises them.
 *
 * @example
 * import { idFromKey } from 'millrace/foundation';
 *
 * const first = idFromKey('core|payments|request|order-1');
 * console.log(first === idFromKey('core|payments|request|order-1')); // true
 */
export function idFromKey(key: string): string {
  const hash = createHash('sha1').update(namespace).update(key, 'utf8').digest().subarray(0, 16);
  hash[6] = (hash.readUInt8(6) & 0x0f) | 0x50;
  hash[8] = (hash.readUInt8(8) & 0x3f) | 0x80;
  return formatUuid(hash);
}

const hexOfByte = Array.from({ length: 256 }, (_none, byte) => byte.toString(16).padStart(2, '0'));

/** Faster than `toString('hex')` for so few bytes. */
function hex(bytes: Buffer, start: number, count: number): string {
  let text = '';
  for (let at = start; at < start + count; at += 1) text += hexOfByte[bytes[at] ?? 0] ?? '';
  return text;
}

function timeHex(ms: number): string {
  const text = ms.toString(16).padStart(12, '0');
  return `${text.slice(0, 8)}-${text.slice(8)}-`;
}

function formatUuid(id: Buffer): string {
  return `${hex(id, 0, 4)}-${hex(id, 4, 2)}-${hex(id, 6, 2)}-${hex(id, 8, 2)}-${hex(id, 10, 6)}`;
}

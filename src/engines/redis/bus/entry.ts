// Converts between the entries of a Redis stream and those of the bus.

import type { StartFrom } from '../../../bus/bus.ts';
import type { StoredEntry } from '../../../bus/bus-engine.ts';
import { textOf } from '../connection/engine.ts';

const idPartMax = 2n ** 64n - 1n;
/** The latest time of a `Date`; ids that other programs wrote may contain a later one. */
const dateMsMax = 8_640_000_000_000_000;

export function storedEntry(
  subject: string,
  sequence: string,
  fields: readonly unknown[],
): StoredEntry {
  const data = fieldOf(fields, 'data');
  const meta = fieldOf(fields, 'meta');
  return {
    subject,
    sequence,
    position: undefined,
    storedAtMs: storedAtMsOf(sequence),
    data: data ?? Buffer.from(JSON.stringify(fields.map(textOf))),
    meta: data === undefined || meta === undefined ? undefined : textOf(meta),
  };
}

export function storedAtMsOf(sequence: string): number {
  return Math.min(Number(sequence.split('-', 1)[0]), dateMsMax);
}

function fieldOf(fields: readonly unknown[], name: string): Uint8Array | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1];
    if (textOf(fields[at]) === name && value instanceof Uint8Array) return value;
  }
  return undefined;
}

/** The id after which a reader starts; `$` is the id of the last entry at that moment. */
export function idBefore(from: StartFrom): string {
  if (from === 'start' || (typeof from === 'object' && 'position' in from)) return '0-0';
  if (from === 'end') return '$';
  const id = 'time' in from ? String(Math.max(0, from.time.getTime())) : from.sequence;
  const [ms = '0', seq = '0'] = id.split('-');
  if (BigInt(seq) > 0n) return `${ms}-${BigInt(seq) - 1n}`;
  return BigInt(ms) > 0n ? `${BigInt(ms) - 1n}-${idPartMax}` : '0-0';
}

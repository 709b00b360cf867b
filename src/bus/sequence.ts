/**
 * Orders two sequences of one subject: negative if `a` comes first. Depending on the engine, a sequence is one number
 * (`42`) or two (`1700000000000-3`).
 *
 * @example
 * import { compareSequences } from 'millrace/bus';
 *
 * console.log(compareSequences('9', '10') < 0); // true
 * console.log(compareSequences('1700-2', '1700-10') < 0); // true
 */
export function compareSequences(a: string, b: string): number {
  const [aFirst, aSecond] = parts(a);
  const [bFirst, bSecond] = parts(b);
  return compare(aFirst, bFirst) || compare(aSecond, bSecond);
}

export function isSequence(text: string): boolean {
  return /^\d{1,20}(?:-\d{1,20})?$/.test(text);
}

function parts(text: string): readonly [bigint, bigint] {
  const [first = '0', second = '0'] = text.split('-');
  return [BigInt(first), BigInt(second)];
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The lowest sequence that can follow this one. */
export function sequenceAfter(sequence: string): string {
  const [first = '0', second] = sequence.split('-');
  return second === undefined ? String(BigInt(first) + 1n) : `${first}-${BigInt(second) + 1n}`;
}

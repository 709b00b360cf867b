// Where an event stands among all events: opaque to callers, ordered by plain text comparison.

import { MillraceError } from '../foundation/error.ts';

declare const brand: unique symbol;

/** Compare with `<` and `>`; keep it as it is; it stays valid as long as the store does. */
export type Position = string & { readonly [brand]: 'position' };

const digits = 16;
/** Up to the largest number that JavaScript counts exactly. */
const shape = /^00[01][0-9a-f]{13}$/;

/** Before the first event of any store. */
export const startPosition = '0'.repeat(digits) as Position;

/** Fixed width, so that text order is numeric order. */
export function toPosition(sequence: number): Position {
  return sequence.toString(16).padStart(digits, '0') as Position;
}

/** The engine's own number behind a position; what is none would be read as "not a number". */
export function toSequence(position: Position): number {
  return Number.parseInt(parsePosition(position), 16);
}

/**
 * Checks a position that came from outside: a checkpoint, a header, a command line.
 *
 * @example
 * import { parsePosition } from 'millrace/store';
 *
 * const after = parsePosition('00000000000003e8');
 */
export function parsePosition(text: string): Position {
  if (shape.test(text)) return text as Position;
  throw new MillraceError(
    'POSITION_INVALID',
    `'${text.slice(0, 40)}' is not a position of a store`,
    {
      details: { text: text.slice(0, 40) },
    },
  );
}

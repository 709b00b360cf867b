// The position of an event among all events: opaque to callers, ordered by string comparison.

import { MillraceError } from '../foundation/error.ts';

declare const brand: unique symbol;

/** Compare positions with `<` and `>`; a position stays valid for the lifetime of the store. */
export type Position = string & { readonly [brand]: 'position' };

const digits = 16;
/** Up to `Number.MAX_SAFE_INTEGER`. */
const shape = /^00[01][0-9a-f]{13}$/;

/** Before the first event of any store. */
export const startPosition = '0'.repeat(digits) as Position;

/** Fixed width: string order equals numeric order. */
export function toPosition(sequence: number): Position {
  return sequence.toString(16).padStart(digits, '0') as Position;
}

/** The engine's sequence number of a position; throws if the position is invalid. */
export function toSequence(position: Position): number {
  return Number.parseInt(parsePosition(position), 16);
}

/**
 * Checks an external position: from a checkpoint, a header or a command line.
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
    `invalid position '${text.slice(0, 40)}': expected 16 hexadecimal digits`,
    {
      details: { text: text.slice(0, 40) },
    },
  );
}

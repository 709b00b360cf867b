// The position of an event among all events: opaque to callers, ordered by string comparison.

import { MillraceError } from '../foundation/error.ts';
import { compileFilter } from './event-filter.ts';
import type { ReadAllOptions } from './event-store.ts';
import { pageLimits } from './page-bound.ts';
import type { StoreEngine } from './store-engine.ts';

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
 * How far `to` is after `from`, in the unit of the store (`positionUnit`): for reports and shares only, because a
 * sum of a position and a number is no position.
 */
export function positionDistance(from: Position, to: Position): number {
  return Math.max(0, toSequence(to) - toSequence(from));
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

/** Where a read of all events starts. Only positions that count events have a next one. */
export function startOf(
  { capabilities }: StoreEngine,
  { direction, after, upTo }: ReadAllOptions,
): { readonly start: number; readonly isInclusive: boolean } {
  const isBackwards = direction === 'backwards';
  if (isBackwards && upTo !== undefined) {
    const at = toSequence(upTo);
    const isInclusive = capabilities.positionUnit === 'bytes' && at > 0;
    return { start: isInclusive ? at : at + 1, isInclusive };
  }
  const start = isBackwards ? Number.MAX_SAFE_INTEGER : 0;
  return { start: after === undefined ? start : toSequence(after), isInclusive: false };
}

/**
 * The sequence of the last event recorded before this time, for engines that number events in the order of recording. As
 * precise as the clocks of the appending processes.
 */
export async function bisect(
  engine: Pick<StoreEngine, 'readAll' | 'head'>,
  atMs: number,
): Promise<number> {
  const query = {
    direction: 'forwards',
    limit: 1,
    bytesMax: pageLimits.bytesDefault,
    filter: compileFilter(undefined),
  } as const;
  // Events up to `low` were recorded before `atMs`; events after `high` were not.
  let low = 0;
  let high = await engine.head();
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const [next] = (await engine.readAll({ ...query, after: middle })).rows;
    if (next === undefined || next.recordedAtMs >= atMs) high = middle;
    else low = next.sequence;
  }
  return low;
}

// Cursors of engines that sort: the place of the last document of a page, as an opaque text.

import { MillraceError } from '../../foundation/error.ts';

/** Where a page ended; without a score where ids alone are sorted. */
export interface PagePlace {
  readonly score: number;
  readonly id: string;
}

export function toCursor({ score, id }: PagePlace): string {
  return Buffer.from(JSON.stringify([score, id])).toString('base64url');
}

export function fromCursor(cursor: string): PagePlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(place) && place.length === 2) {
      const [score, id] = place as readonly unknown[];
      if (typeof score === 'number' && typeof id === 'string' && !id.includes('\0')) {
        return { score, id };
      }
    }
  } catch (error) {
    throw cursorInvalid(cursor, error);
  }
  throw cursorInvalid(cursor);
}

function cursorInvalid(cursor: string, cause?: unknown): MillraceError {
  const shown = cursor.slice(0, 60);
  return new MillraceError('CURSOR_INVALID', `'${shown}' is not the cursor of a page`, {
    details: { cursor: shown },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** As all engines sort ids: byte by byte. Ids hold ASCII only. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

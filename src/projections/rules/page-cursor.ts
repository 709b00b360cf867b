// Cursors of engines with sorted pages: the last document of a page as an opaque text.

import { MillraceError } from '../../foundation/error.ts';

/** The last document of a page; the score is 0 when pages are sorted by id only. */
export interface SortKey {
  readonly score: number;
  readonly id: string;
}

export function toCursor({ score, id }: SortKey): string {
  return Buffer.from(JSON.stringify([score, id])).toString('base64url');
}

export function fromCursor(cursor: string): SortKey {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(parts) && parts.length === 2) {
      const [score, id] = parts as readonly unknown[];
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
  return new MillraceError('CURSOR_INVALID', `invalid cursor '${shown}'`, {
    details: { cursor: shown },
    cause,
  });
}

/** Compares ids byte by byte, like all engines. Ids are ASCII. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

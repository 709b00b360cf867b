// The cursor of a page of jobs, the same in every engine: `<enqueuedAtMs>/<id>`, newest first.

import { MillraceError } from '../foundation/error.ts';
import type { TaskHead } from './task-job.ts';

export const cursorOf = ({ enqueuedAtMs, id }: TaskHead): string => `${enqueuedAtMs}/${id}`;

export function parseCursor(cursor: string): {
  readonly enqueuedAtMs: number;
  readonly id: string;
} {
  const [, ms, id] = /^(\d{1,16})\/(.{1,128})$/.exec(cursor) ?? [];
  if (ms === undefined || id === undefined) {
    const details = { field: 'cursor' };
    throw new MillraceError(
      'TASK_INVALID',
      'cursor is invalid: pass the cursor of the previous page unchanged',
      { details },
    );
  }
  return { enqueuedAtMs: Number(ms), id };
}

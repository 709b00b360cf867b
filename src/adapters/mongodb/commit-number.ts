// The numbers of commits, the points of the log that they make, and whether they still hold events.

import { MillraceError } from '../../foundation/error.ts';
import type { CommitDocument } from './mongodb-schema.ts';

/** A point of the log: so many commits, the last of which ends at this position. */
export interface LogPoint {
  readonly commit: number;
  readonly position: number;
}

const digits = 16;

/** Fixed width, so that text order is numeric order. */
export function commitId(number: number): string {
  return number.toString(16).padStart(digits, '0');
}

export function numberOf(id: string): number {
  return Number.parseInt(id, 16);
}

export function pointOf({ _id, from, count }: CommitDocument): LogPoint {
  return { commit: numberOf(_id), position: from + count - 1 };
}

/** Its events are not known to lie in `events` yet. */
export function isFull({ events, parts }: CommitDocument): boolean {
  return events !== undefined || parts !== undefined;
}

export function missingCommit(number: number): MillraceError {
  return new MillraceError(
    'STORE_CORRUPT',
    `commit ${number} of the log is missing: someone removed it`,
    { details: { commit: commitId(number) } },
  );
}
